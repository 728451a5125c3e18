"""How a training run is told: its name among others, a sentence, and its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..figures import Figure, curves, gantt, placeholder, staleness_bars
from ..trainer.run import Run

Settings = Mapping[str, Any]
SHORT = {
    "stages": "P={}",
    "microbatches": "N={}",
    "rate": "rate {:.3g}",
    "steps": "{} steps",
    "engine": "{}",
}


def labels(settings: Sequence[Settings]) -> list[str]:
    """A name for each run: its method, and what is not the same in all of them."""
    differing = [
        key
        for key in (settings[0] if settings else {})
        if key not in ("task", "method") and len({s[key] for s in settings}) > 1
    ]
    return [", ".join([s["method"], *(_short(k, s[k]) for k in differing)]) for s in settings]


def _short(key: str, value: Any) -> str:
    return SHORT.get(key, key + " {}").format(value)


def tell(run: Run) -> str:
    """How a run stands, in a sentence or two."""
    done = f"step {run.steps} of {run.config['steps']}"
    loss = f", training loss {run.losses[-1]:.3g}" if run.losses else ""
    match run.status:
        case "running":
            return f"Training: {done}{loss}."
        case "diverged":
            assert run.diverged is not None
            step, stage, what = run.diverged
            return (
                f"Diverged at step {step + 1}: {what}. Stage {stage + 1} is the first whose "
                "numbers broke."
            )
        case "done":
            return f"Done: {run.steps} steps, {run.seconds:.1f} s of computing{scores(run)}."
        case _:
            return f"{run.status.capitalize()}: {run.note or done}{scores(run)}."


def scores(run: Run) -> str:
    """ "; accuracy 98.1", from the last evaluation."""
    last = {k: v[-1][1] for k, v in run.metrics.items() if v and k != "loss"}
    return "".join(f"; {name} {value:.3g}" for name, value in last.items())


def figures(
    runs: Mapping[str, Run], last: Run | None, log: bool = True, time: str = "measured"
) -> dict[str, Figure]:
    """The curves of all runs; the chart and the staleness of the last.

    log   a logarithmic loss axis
    time  of the chart: "measured" or "model"
    """
    return {
        "curves": curves(runs, log=log),
        "gantt": _chart(last, time),
        "staleness": _staleness(last),
    }


def _chart(run: Run | None, time: str) -> Figure:
    if run is None or not run.trace.count:
        return placeholder("The Gantt chart of your last run appears here", 180)
    return gantt(run, measured=time == "measured")


def _staleness(run: Run | None) -> Figure:
    if run is None or not run.staleness.forward:
        return placeholder("The staleness of your last run, stage by stage, appears here", 160)
    plan = run.plan
    if plan is None:
        return staleness_bars(run.staleness)
    if run.steps <= plan.full:
        early = f"The run ended before its pipe was full, which takes {plan.full} steps"
        return staleness_bars(run.staleness, title=early)
    return staleness_bars(run.staleness, plan.method.taus(plan.stages, plan.microbatches))
