"""The map of stability when forward and backward read different weights, with and without T2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

from ..plan.theory import Quadratic, gamma, gamma_star, lemma1, spectral_radius_map, threshold
from .stability import Mark, map_layout, map_traces, mark_traces
from .style import COLOURS, GREY, Figure, figure, number

LOW, HIGH, LONGEST = 0.003, 2.6, 20
RATES = np.geomspace(LOW, HIGH, 41)
READ_OUT = 10  # the delay that the title and the words speak of


class Reads(NamedTuple):
    """What is on the map: Delta in units of the curvature, tau_bkwd, and T2: its D, "theory" for
    gamma*, 0 for none."""

    discrepancy: float = 5.0
    tau_bkwd: int = 0
    t2: float | str = 0.0

    def at(self, tau_fwd: int) -> Quadratic:
        """The case at one delay.  Without a gap there is nothing to correct."""
        gap, g = tau_fwd - self.tau_bkwd, None
        if self.t2 and gap:
            g = gamma_star(gap) if isinstance(self.t2, str) else gamma(self.t2, gap)
        return Quadratic(tau_fwd, self.tau_bkwd, discrepancy=self.discrepancy, gamma=g)

    @property
    def bare(self) -> Reads:
        """The same without T2."""
        return self._replace(t2=0.0)

    @property
    def delays(self) -> np.ndarray:
        """The rows of the map: tau_fwd.  All short gaps, then every other delay, so that the map
        follows a slider."""
        every = np.arange(self.tau_bkwd, LONGEST + 1)
        return every[(every < self.tau_bkwd + 6) | (every % 2 == 0)]


def discrepancy_map(
    discrepancy: float = 5.0,
    tau_bkwd: int = 0,
    t2: float | str = 0.0,
    marks: Sequence[Mark] = (),
    title: str | None = None,
) -> Figure:
    """Colour: the largest root with these reads, by rate and tau_fwd.  Lines: the edge of stability
    of the delay alone (Lemma 1), with Delta, and with Delta and T2.

    t2     T2's D, "theory" for gamma*, 0 for none
    marks  runs
    ValueError for what plan.theory refuses.
    """
    reads = Reads(discrepancy, tau_bkwd, t2)
    return figure(
        [_colours(reads), *_edges(reads), *mark_traces(marks)],
        title or message(reads),
        _words(reads, marks),
        **_layout(),
        height=440,
    )


@lru_cache(maxsize=64)
def edge_of(reads: Reads) -> np.ndarray:
    """The smallest unstable rate times curvature at each of reads.delays."""
    return np.array([threshold(reads.at(t)) for t in reads.delays.tolist()])


@lru_cache(maxsize=64)
def _radii(reads: Reads) -> np.ndarray:
    def gamma_of(gap: float) -> float:
        return gamma_star(gap) if isinstance(reads.t2, str) else gamma(reads.t2, gap)

    case = Quadratic(LONGEST, reads.tau_bkwd, discrepancy=reads.discrepancy)
    return spectral_radius_map(case, RATES, reads.delays, gamma_of if reads.t2 else None)


def _colours(reads: Reads) -> go.Heatmap:
    """The colours of the map of a plain delay, at other places."""
    heat = next(map_traces(0.0))
    radius = _radii(reads)
    z = np.round(np.clip(radius, 0.9, 1.1), 4)
    return heat.update(x=RATES, y=reads.delays, z=z, customdata=np.round(radius, 4))


def _edges(reads: Reads) -> Iterator[go.Scatter]:
    taus = np.linspace(0, LONGEST, 81)
    yield _line(np.array([lemma1(t) for t in taus]), taus, "delay alone: Lemma 1", GREY, "dot")
    name = f"with Δ = {reads.discrepancy:g}"
    yield _line(edge_of(reads.bare), reads.delays, name, COLOURS[1], "solid")
    if reads.t2:
        yield _line(edge_of(reads), reads.delays, f"{name} and T2", COLOURS[2], "dash")


def _line(x: np.ndarray, taus: np.ndarray, name: str, colour: str, dash: str) -> go.Scatter:
    return go.Scatter(
        x=x,
        y=taus,
        mode="lines",
        name=name,
        line={"color": colour, "width": 3, "dash": dash},
        hovertemplate=f"{name}<br>delay %{{y:.3g}}: unstable from %{{x:.4g}}<extra></extra>",
    )


def _layout() -> dict[str, Any]:
    layout = map_layout(HIGH)
    ticks = [0.003, 0.01, 0.03, 0.1, 0.3, 1]
    layout["xaxis"] |= {
        "range": [float(np.log10(LOW)), float(np.log10(HIGH))],
        "tickvals": ticks,
        "ticktext": [f"{t:g}" for t in ticks],
    }
    layout["yaxis"]["title"]["text"] = "forward delay τ_fwd (steps)"
    return layout


def edge_at(reads: Reads) -> float:
    """The edge at the delay that words speak of."""
    return float(edge_of(reads)[list(reads.delays).index(READ_OUT)])


def message(reads: Reads) -> str:
    """The edges at the delay READ_OUT, in words."""
    bare = f"rates from {number(edge_at(reads.bare))} on are unstable"
    said = f"Delay {READ_OUT}, Δ = {reads.discrepancy:g}: {bare}"
    return f"{said}; with T2, from {number(edge_at(reads))}" if reads.t2 else said


def agreement(reads: Reads, marks: Sequence[Mark]) -> tuple[int, int]:
    """(runs on the side of the edge that they should be on, all runs)."""
    right = [m.settled == (m.x < np.interp(m.tau, reads.delays, edge_of(reads))) for m in marks]
    return sum(right), len(right)


def _words(reads: Reads, marks: Sequence[Mark]) -> str:
    text = (
        f"A map with the rate times the curvature, {LOW} to {HIGH} on a logarithmic axis, to the "
        f"right, and forward delays of {reads.tau_bkwd} to {LONGEST} steps upwards; backward delay "
        f"{reads.tau_bkwd}, Δ = {reads.discrepancy:g}. At delay {READ_OUT} the edge of stability "
        f"lies at {number(lemma1(READ_OUT))} for the delay alone and at "
        f"{edge_at(reads.bare):.6f} with Δ."
    )
    if reads.t2:
        kind = "gamma*" if isinstance(reads.t2, str) else f"D = {number(reads.t2)}"
        text += f" T2 with {kind} puts it at {edge_at(reads):.6f}."
    if marks:
        text += f" {sum(m.settled for m in marks)} of {len(marks)} runs settled."
    return text
