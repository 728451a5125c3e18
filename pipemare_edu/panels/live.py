"""LiveTraining: train a task, watch the curves, then see what the pipeline did."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from .. import tasks
from ..checks import unknown
from ..figures import Figure, curves
from ..trainer import members
from ..trainer.registry import method_names
from ..trainer.run import Run
from ..training import prepare, warm_up
from . import controls as c
from . import words
from .base import Goal, Panel
from .engines import engines, picked
from .shown import Shown
from .story import Settings, figures, labels, tell

OVERLAID = 6  # runs whose curves are shown together


def _trained_well(run: Run) -> bool:
    asynchronous = run.plan is not None and not run.plan.method.synchronous
    last = [values[-1][1] for name, values in run.metrics.items() if name != "loss"]
    return run.status == "done" and asynchronous and any(value > 90 for value in last)


GOAL = Goal(
    "Train with an asynchronous method, pipedream or one of the pipemares, to a test accuracy "
    "above 90 %.",
    lambda panel: any(_trained_well(run) for run in panel.runs.values()),
)


class LiveTraining(Panel):
    """Train for real, in this kernel or in worker processes.

    task, method, stages, microbatches, steps, seed, network, rate, engine: where the controls stand
    first; None takes the task's own setting.  log: a logarithmic loss axis.  time: of the Gantt
    chart, "measured" or "model".  goal: what a learner should bring about, or None.

    `runs` holds the runs so far by label; `result()` gives the last one.  Raises ValueError for a
    name that is not known.
    """

    def __init__(
        self,
        task: str = "digits",
        method: str = "pipemare",
        stages: int | None = None,
        microbatches: int | None = None,
        steps: int | None = None,
        seed: int = 0,
        network: str | None = None,
        rate: float | None = None,
        log: bool = True,
        time: str = "measured",
        goal: Goal | None = GOAL,
        engine: str = "kernel",
    ) -> None:
        warm_up()
        picked(engine, engines())
        if method not in method_names():
            raise ValueError(unknown("method", method, method_names()))
        given = {"stages": stages, "microbatches": microbatches, "rate": rate, "steps": steps}
        named = {"task": task, "method": method, **given, "seed": seed, "network": network}
        text = words.text_form("LiveTraining", named, "three figures")
        setting = tasks.get(task).setting(network)
        start = {k: getattr(setting, k) if v is None else v for k, v in given.items()}
        self._history: list[tuple[Settings, Run]] = []
        views = {
            "time": c.choice("chart time", ["measured", "model"], time),
            "loss": c.choice("loss axis", ["log", "linear"], "log" if log else "linear"),
        }
        controls = _controls(task, network, method, seed, start)
        controls["engine"] = c.choice("engine", list(engines()), engine)
        super().__init__(controls, text, goal, views)
        changed = {
            "task": self._task_changed,
            "network": self._network_changed,
            "engine": self._engine_changed,
        }
        for name, callback in changed.items():
            self.controls[name].observe(self.guarded(callback), "value")

    @property
    def runs(self) -> dict[str, Run]:
        """The runs so far: label -> run."""
        names = labels([settings for settings, _ in self._history])
        return dict(zip(names, (run for _, run in self._history), strict=True))

    @property
    def last(self) -> Run | None:
        """The last run."""
        return self._history[-1][1] if self._history else None

    def work(self, settings: dict[str, Any]) -> Generator[float, None, None]:
        chosen = dict(settings)
        job = prepare(**engines()[chosen.pop("engine")], **chosen)
        for run in job.chunks():
            if self.last is not run:
                self._keep(settings, run)
            if self.stopping:
                run.cancel()
            yield run.steps / job.steps

    def draw(self, live: bool = False) -> dict[str, Figure]:
        log = self.views["loss"].value == "log"
        if live:
            return {"curves": curves(self.runs, log=log)}
        return figures(self.runs, self.last, log, self.views["time"].value)

    def outcome(self) -> tuple[str, str]:
        return (self.last.status, tell(self.last)) if self.last else ("ready", "Ready.")

    def value(self) -> Run | None:
        return self.last

    def refresh_methods(self) -> None:
        """Offer the methods that were registered since."""
        menu = self.controls["method"]
        if list(menu.options) != method_names():
            chosen = menu.value
            menu.options = method_names()
            menu.value = chosen

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        self.refresh_methods()
        return super()._repr_mimebundle_(**options)

    def _keep(self, settings: Settings, run: Run) -> None:
        """Remember the run beside those of the same task, in place of one that it repeats."""
        kept = [(s, r) for s, r in self._history if s["task"] == settings["task"] and s != settings]
        self._history = [*kept, (settings, run)][-OVERLAID:]

    def _task_changed(self, _: Any) -> None:
        networks = list(tasks.get(self.controls["task"].value).settings)
        self.controls["network"].options = networks
        self._network_changed(None)  # the name may be the same, the network is another

    def _engine_changed(self, _: Any) -> None:
        if engines()[self.controls["engine"].value]["workers"]:
            members.warm_up()  # workers are ready before Run is clicked

    def _network_changed(self, _: Any) -> None:
        task, network = self.controls["task"].value, self.controls["network"].value
        if network is None:  # between two lists of options
            return
        setting = tasks.get(task).setting(network)
        for name in ("stages", "microbatches", "rate", "steps"):
            self.controls[name].value = getattr(setting, name)


def live_training(
    task: str = "digits",
    method: str = "pipemare",
    stages: int | None = None,
    microbatches: int | None = None,
    steps: int | None = None,
    seed: int = 0,
    network: str | None = None,
    rate: float | None = None,
    log: bool = True,
    time: str = "measured",
    engine: str = "kernel",
) -> Shown:
    """What LiveTraining shows after one Run, without widgets; `.value` is the run."""
    job = prepare(
        task, method, stages, microbatches, steps, seed, network=network, rate=rate,
        **picked(engine, engines()),
    )  # fmt: skip
    run = job.fit()
    return Shown(figures({method: run}, run, log, time), run)


def _controls(
    task: str, network: str | None, method: str, seed: int, start: dict[str, Any]
) -> dict[str, Any]:
    networks = list(tasks.get(task).settings)
    return {
        "task": c.choice("task", tasks.names(), task),
        "network": c.choice("network", networks, network or networks[0]),
        "method": c.choice("method", method_names(), method),
        "stages": c.count("stages", start["stages"], most=24),
        "microbatches": c.count("microbatches", start["microbatches"], most=16),
        "rate": c.log_number("rate", start["rate"], low=-4, high=1),
        "steps": c.whole("steps", start["steps"], least=1),
        "seed": c.whole("seed", seed),
    }
