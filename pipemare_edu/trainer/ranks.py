"""The engine under torchrun: this process is one worker among several, on one machine or many.

Every rank builds the same trainer and reads the same batches (the first and the last rank use them;
rank 0's random state is everybody's).  At the end all ranks hold the same run and the same weights.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from datetime import timedelta
from time import perf_counter
from typing import Any

import torch
import torch.distributed as dist

from . import checkpoint
from .checkpoint import State, collect
from .fit import Fit
from .inprocess import InProcess
from .job import job
from .memory import counted
from .placement import START_SECONDS, Placement
from .trace import Trace
from .wires import Wires

_ROUNDS = 8  # of question and answer, to compare two clocks


class Ranks:
    """Runs the stages of this rank and talks with the others.  See session.Engine."""

    def __init__(self, fit: Fit, placement: Placement, timeout: float) -> None:
        self.fit, self.placement, self.timeout = fit, placement, timeout
        self._here: Hosted | None = None
        self._all: list[Any] = []

    def advance(self, until: float) -> bool:
        try:
            if self._here is None:
                self._here = self._start()
            if not self._here.advance(until):
                return False
            self._exchange(self._here)
            self._here.links.close()
        except BaseException as error:
            if self._here is not None:
                self._here.links.fail(f"{error} (worker {self.placement.rank})")
            raise
        return True

    def _start(self) -> Hosted:
        fit, place = self.fit, self.placement
        mine = job(fit, place, place.rank)
        device = mine.device
        if device.type == "cuda":
            torch.cuda.set_device(device)
        if not dist.is_initialized():
            start = max(self.timeout, START_SECONDS)
            dist.init_process_group(place.backend, timeout=timedelta(seconds=start))
        random = [torch.get_rng_state()]
        dist.broadcast_object_list(random)
        torch.set_rng_state(random[0])
        fit.trainer.random_state = random[0]
        mine = replace(mine, layers=copy.deepcopy(mine.layers))
        built = mine.build()
        feed = fit.feed(device, (mine.hosted.start == 0, mine.hosted.stop == len(mine.homes)))
        dist.barrier()  # ranks may come seconds apart; only from here on is silence suspicious
        links = Wires(place.rank, place.homes, device, timedelta(seconds=self.timeout))
        return Hosted(fit, built, mine.interpreter(built, feed, links), links)

    def scores(self) -> list[tuple[int, dict[str, float]]]:
        return []  # the last rank's are everybody's at the end

    def diverged(self) -> tuple[int, str] | None:
        found = (said["diverged"] for said in self._all)
        return next(filter(None, found), None)

    def wind_down(self) -> None:
        # Only the first stage knows what has been started; the others hear of the end from it.
        if self._here is not None and self.placement.rank == 0:
            self._here.wind_down()

    def _exchange(self, here: Hosted) -> None:
        """Everybody tells everybody what it has."""
        run, (stages, optimizers) = self.fit.run, here.built
        told = {
            "losses": list(run.losses),
            "scores": here.scores(),
            "diverged": here.diverged(),
            "step": stages[0].version,
            "reads": [stage.reads for stage in stages],
            "memory": [counted(s, o) for s, o in zip(stages, optimizers, strict=True)],
            "trace": run.trace.shifted(here.interpreter.began + _offset(here.links.device)),
            "state": collect(*here.built).encode(),
        }
        self._all = here.links.everybody(told)

    def finish(self, drained: bool) -> str:
        if not drained or not self._all:
            return self.fit.left("from before the run")
        run, trainer = self.fit.run, self.fit.trainer
        run.losses[:] = self._all[-1]["losses"]
        for step, scores in self._all[-1]["scores"]:
            for name, value in scores.items():
                run.metrics.setdefault(name, []).append((step, value))
        run.memory = [counts for said in self._all for counts in said["memory"]]
        run.trace = Trace.joined([said["trace"] for said in self._all])
        run.trace.reads = [reads for said in self._all for reads in said["reads"]]
        state = checkpoint.merge(State.decode(said["state"]) for said in self._all)
        checkpoint.put_back(state, trainer.stages, trainer.optimizers)
        for stage in trainer.stages:
            stage.version = self._all[0]["step"]
        return ""

    def close(self) -> None:
        """The process group stays for the next fit."""


class Hosted(InProcess):
    """The stages of this rank, whose checkpoints are parts of one."""

    def __init__(self, fit: Fit, built: Any, interpreter: Any, links: Wires) -> None:
        super().__init__(fit, built, interpreter)
        self.links = links

    def drained(self, step: int) -> None:
        if self.fit.plan.drains(step):
            parts = self.links.everybody(collect(*self.built).encode())
            if self.links.rank == 0:
                self.fit.drained(step, lambda: checkpoint.merge(map(State.decode, parts)))


def _offset(device: torch.device) -> float:
    """Seconds to add to this rank's perf_counter() to have rank 0's: by the quickest of several
    answers of rank 0, which it gave half-way between question and answer."""
    rank, clock = dist.get_rank(), torch.zeros(1, dtype=torch.float64, device=device)
    found = []
    for other in range(1, dist.get_world_size()):
        for _ in range(_ROUNDS):
            asked = perf_counter()
            if rank == other:
                dist.send(clock, 0)
                dist.recv(clock, 0)
                answered = perf_counter()
                found.append((answered - asked, float(clock) - (asked + answered) / 2))
            elif rank == 0:
                dist.recv(clock, other)
                dist.send(clock.fill_(perf_counter()), other)
    return min(found)[1] if found else 0.0
