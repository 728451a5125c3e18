"""Loss and metric of several runs, overlaid.  A run that diverged ends in a cross and the step."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from .style import COLOURS, DASHES, LEFT, RIGHT, Figure, axis, figure, listed, log_axis, number

if TYPE_CHECKING:
    from ..trainer.run import Run

POINTS = 200  # most points of a curve; a longer one is drawn as means
MARKS = ("circle", "square", "diamond", "triangle-up", "star", "hexagon")


def curves(
    runs: Mapping[str, Run] | Sequence[Run] | Run,
    metric: str | None = None,
    log: bool = True,
    title: str | None = None,
) -> Figure:
    """The training loss of every run over its steps, and beside it a metric of the evaluations.

    runs    {label: run}, or a run or several, which are then labelled by their methods
    metric  a name in run.metrics; by default the first that is not "loss"
    log     a logarithmic loss axis
    A point of a long run's loss is a mean over `bucket(run)` steps.
    """
    if isinstance(runs, Mapping):
        named = dict(runs)
    else:
        named = _by_method(runs if isinstance(runs, Sequence) else [runs])
    metric = metric or _first_metric(named.values())
    size = max((bucket(run) for run in named.values()), default=1)
    traces = [t for i, (label, run) in enumerate(named.items()) for t in _traces(i, label, run)]
    scores = [
        _metric_trace(i, label, run.metrics[metric])
        for i, (label, run) in enumerate(named.items())
        if metric in run.metrics
    ]
    return figure(
        [*traces, *scores],
        title or _message(named, metric),
        " ".join(_words(label, run, metric) for label, run in named.items()) or "No run yet.",
        # Plotly has no legend until there is a point: the plot keeps its place when it comes.
        margin={} if any(len(trace.x) for trace in traces) else {"b": 82},
        **_layout(metric if scores else None, _losses(traces, log, size, _top(named.values()))),
    )


def bucket(run: Run, most: int = POINTS) -> int:
    """Steps in one drawn point: a power of two, so that a growing curve seldom changes its past."""
    return 2 ** max(0, math.ceil(math.log2(max(1, run.steps) / most)))


def _by_method(runs: Iterable[Run]) -> dict[str, Run]:
    out: dict[str, Run] = {}
    for n, run in enumerate(runs, start=1):
        label = str(run.config.get("method", "run"))
        out[label if label not in out else f"{label} ({n})"] = run
    return out


def _first_metric(runs: Iterable[Run]) -> str:
    return next((name for run in runs for name in run.metrics if name != "loss"), "loss")


def _finite(losses: Sequence[float]) -> np.ndarray:
    """Finite losses; those that are not become the last that was, and 0 without any."""
    values, last = np.array(losses, dtype=float), 0.0
    for n in np.flatnonzero(~np.isfinite(values)):
        values[n] = last if n == 0 else values[n - 1]
    return values


def points(run: Run, most: int = POINTS) -> tuple[np.ndarray, np.ndarray]:
    """(steps done, mean loss) of each bucket; the last may be a part of one."""
    values, size = _finite(run.losses), bucket(run, most)
    starts = np.arange(0, len(values), size)
    ends = np.minimum(starts + size, len(values))
    sums = np.add.reduceat(values, starts) if len(values) else values
    return ends, sums / np.maximum(ends - starts, 1)


def _traces(i: int, label: str, run: Run) -> Iterator[go.Scatter]:
    colour = COLOURS[i % len(COLOURS)]
    x, y = points(run)
    if run.diverged and len(x):
        y[-1] = _finite(run.losses)[-1]
    yield go.Scatter(
        x=x,
        y=y,
        name=label,
        legendgroup=label,
        mode="lines+markers" if len(x) < 3 else "lines",
        line={"color": colour, "dash": DASHES[i % len(DASHES)], "width": 2},
        hovertemplate="step %{x}: loss %{y:.3g}",
    )
    if run.diverged:
        step = run.diverged[0] + 1
        yield go.Scatter(
            x=np.array([step]),
            y=y[-1:],
            name=f"diverged at step {step}",
            legendgroup=label,
            mode="markers",
            marker={"symbol": "x", "size": 11, "color": colour},
            hovertemplate=f"{label}: diverged at step {step}<extra></extra>",
        )


def _metric_trace(i: int, label: str, values: Sequence[tuple[int, float]]) -> go.Scatter:
    colour = COLOURS[i % len(COLOURS)]
    return go.Scatter(
        x=np.array([step for step, _ in values]),
        y=np.array([value for _, value in values]),
        name=label,
        legendgroup=label,
        showlegend=False,
        mode="lines+markers",
        line={"color": colour, "dash": DASHES[i % len(DASHES)], "width": 2},
        marker={"symbol": MARKS[i % len(MARKS)], "size": 7},
        xaxis="x2",
        yaxis="y2",
        hovertemplate="after step %{x}: %{y:.4g}",
    )


def _top(runs: Iterable[Run]) -> float | None:
    """Where a linear loss axis ends, so that a run that diverged does not flatten the others."""
    runs = list(runs)
    if not any(run.diverged for run in runs):
        return None
    return 3.0 * max((float(_finite(run.losses[:1])[0]) for run in runs if run.losses), default=1.0)


def _losses(
    traces: Iterable[go.Scatter], log: bool, size: int, top: float | None
) -> dict[str, Any]:
    title = f"training loss (means of {size} steps)" if size > 1 else "training loss"
    if log:
        return log_axis(title, (loss for t in traces for loss in t.y if loss is not None))
    within = {} if top is None else {"range": [0, top]}
    return axis(title, type="linear", rangemode="tozero", **within)


def _layout(metric: str | None, loss: dict[str, Any]) -> dict[str, Any]:
    score = (
        "no evaluation yet" if metric is None else metric if metric != "loss" else "held-out loss"
    )
    return {
        "height": 360,
        "xaxis": axis("step", domain=LEFT, rangemode="tozero"),
        "yaxis": loss,
        "xaxis2": axis("step", domain=RIGHT, anchor="y2", rangemode="tozero"),
        "yaxis2": axis(score, anchor="x2"),
        "uirevision": "curves",
    }


def _score(run: Run, metric: str) -> float | None:
    values = run.metrics.get(metric)
    return values[-1][1] if values else None


def _message(named: Mapping[str, Run], metric: str) -> str:
    if not named:
        return "The curves of your runs appear here"
    label, run = list(named.items())[-1]
    score = _score(run, metric)
    if run.diverged:
        latest = f"{label} diverges at step {run.diverged[0] + 1}"
    elif run.status == "running":
        latest = f"{label} is training"
    elif score is None:
        latest = f"{label} stopped after {run.steps} steps"
    else:
        latest = f"{label} reaches {metric} {number(score)}{_other(named, metric)}"
    dead = sum(r.diverged is not None for r in named.values())
    return latest + (f"; {dead} of {len(named)} runs diverged" if dead and len(named) > 1 else "")


def _other(named: Mapping[str, Run], metric: str) -> str:
    """How the first of two runs did, if it came to its end."""
    first, *more = named.items()
    score = None if len(more) != 1 or first[1].status != "done" else _score(first[1], metric)
    return "" if score is None else f", {first[0]} {number(score)}"


def _words(label: str, run: Run, metric: str) -> str:
    if not run.losses:
        return f"{label}: no step done yet."
    x, y = points(run)
    kept = [number(y[n]) for n in sorted({0, len(y) // 2, len(y) - 1})]
    text = f"{label}: {run.status} after {run.steps} steps, training loss {' to '.join(kept)}"
    if run.diverged:
        text += f", diverged at step {run.diverged[0] + 1}"
    if run.metrics.get(metric):
        scores = [f"{number(v)} at step {s}" for s, v in run.metrics[metric][-3:]]
        text += f"; {metric} {listed(scores)}"
    return f"{text}."
