"""What the package raises: each says what, where (stage, microbatch, operation), what to do."""

from __future__ import annotations

NAMES = {"F": "forward", "B": "backward", "U": "update", "E": "evaluation", "R": "recompute"}


class PipelineError(RuntimeError):
    """Something went wrong while a pipeline ran."""


class ScheduleError(PipelineError):
    """The operation lists cannot run to their end; the text holds the grid."""


class DataError(PipelineError, ValueError):
    """A minibatch that cannot be trained on; the text names it."""


class SplitError(PipelineError, ValueError):
    """Layers that cannot be cut into these stages."""


class StageError(PipelineError):
    """A layer, loss or optimizer raised.  `__cause__` is what it raised.

    stage       from 0; the text counts from 1
    operation   F, B, U, E or R
    index       the microbatch of an F, B or R, the step of a U or E
    """

    def __init__(self, stage: int, operation: str, index: int, cause: BaseException) -> None:
        unit = "step" if operation in "UE" else "microbatch"
        where = f"stage {stage + 1}, {unit} {index}, {NAMES[operation]}"
        super().__init__(f"{where}: {type(cause).__name__}: {cause}")
        self.stage, self.operation, self.index = stage, operation, index
        self.__cause__ = cause

    def __reduce__(self) -> tuple[object, ...]:
        return StageError, (self.stage, self.operation, self.index, self.__cause__)


class WorkerLost(PipelineError):
    """A worker process ended, or does not answer; the text says which, and its stages."""


class LinkLost(WorkerLost):
    """A neighbouring worker went away, or did not answer within the time-out."""


class WeightSemanticsWarning(UserWarning):
    """A layer computes with parameters in a way that the method's backward weights do not reach."""
