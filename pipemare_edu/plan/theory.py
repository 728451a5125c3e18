"""The scalar quadratic under delay: polynomials, thresholds, iterates (PAPER.md, section 3).

One weight w, loss (L/2) w^2, one step a per optimizer update:

    w[t+1] = w[t] - a * [ (L + Delta) u_fwd - (Delta - Phi) u_bkwd - Phi u_recomp ]

where u_x = w[t - tau_x] is what that pass read, tau in optimizer steps; T2 and momentum add to it.
Every characteristic polynomial is p = q + a r, stable iff all roots lie inside the unit circle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np
from numpy.polynomial.chebyshev import chebroots
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
GammaOf = Callable[[float], float]


@dataclass(frozen=True)
class Quadratic:
    """One row of PAPER.md's table; what is left at its default is absent.

    tau_fwd, tau_bkwd, tau_recomp: delays in optimizer steps, tau_fwd >= tau_recomp >= tau_bkwd.
    curvature: L > 0. discrepancy: Delta, phi: Phi, sensitivities in units of L. gamma: T2's, at
    least 0 and below 1; None is no T2, 0.0 is T2 with the last update alone. momentum: b, heavy
    ball, at least 0 and below 1.

        delay               Quadratic(tau)
        discrepancy         Quadratic(tau_fwd, tau_bkwd, discrepancy=5)
        with T2             Quadratic(tau_fwd, tau_bkwd, discrepancy=5, gamma=gamma_star(gap))
        momentum, tau >= 1  Quadratic(tau, momentum=0.9)
        recompute [+ T2]    Quadratic(10, discrepancy=5, tau_recomp=4, phi=2.5[, gamma=...])

    Anything else, such as momentum with T2, is not in the table and raises ValueError.
    """

    tau_fwd: int = 0
    tau_bkwd: int = 0
    curvature: float = 1.0
    discrepancy: float = 0.0
    gamma: float | None = None
    momentum: float = 0.0
    tau_recomp: int | None = None
    phi: float = 0.0

    def __post_init__(self) -> None:
        recomp = self.tau_fwd if self.tau_recomp is None else self.tau_recomp
        delays = {"tau_fwd": self.tau_fwd, "tau_bkwd": self.tau_bkwd, "tau_recomp": recomp}
        for name, delay in delays.items():
            if not (isinstance(delay, Integral) and delay >= 0):
                raise ValueError(f"{name} must be a whole number of steps >= 0, got {delay!r}")
        if not self.tau_bkwd <= recomp <= self.tau_fwd:
            raise ValueError(f"need tau_fwd >= tau_recomp >= tau_bkwd, got {delays}")
        _check_positive("curvature", self.curvature)
        if not all(abs(x) <= 1e9 * self.curvature for x in (self.discrepancy, self.phi)):
            raise ValueError(f"discrepancy and phi must be at most 1e9 curvature, got {self}")
        if not (0 <= self.momentum < 1 and 0 <= (self.gamma or 0) < 1):
            raise ValueError(f"momentum and gamma must be at least 0 and below 1, got {self}")
        if self.phi and self.tau_recomp is None:
            raise ValueError("phi is the sensitivity to a recompute: give tau_recomp too")
        extras = self.discrepancy or self.tau_recomp is not None or self.gamma is not None
        if self.momentum and (extras or self.tau_fwd < 1):
            raise ValueError("momentum goes with a plain delay tau_fwd >= 1 only: drop the rest")

    def reads(self) -> Iterator[tuple[float, int]]:
        """(sensitivity, delay) of each read; the sensitivities sum to L."""
        yield self.curvature + self.discrepancy, self.tau_fwd
        yield self.phi - self.discrepancy, self.tau_bkwd
        if self.tau_recomp is not None:
            yield -self.phi, self.tau_recomp

    def parts(self) -> tuple[Floats, Floats]:
        """q and r of p = q + a r, highest power first, padded to one length; q is monic."""
        z_minus_1 = np.array([1.0, -1.0])
        if self.momentum:  # z^(tau-1) (z-1) (z-b)  and  L
            q = np.pad(np.convolve(z_minus_1, [1, -self.momentum]), (0, self.tau_fwd - 1))
            return q, np.pad([self.curvature], (self.tau_fwd + 1, 0))
        factor = np.array([1.0] if self.gamma is None else [1.0, -self.gamma])  # T2's is z - g
        q = np.append(np.convolve(z_minus_1, factor), np.zeros(self.tau_fwd))
        r = np.zeros_like(q)
        for sensitivity, delay in self.reads():
            k = self.tau_fwd - delay  # c z^k, and with T2 c z^k [ (z-g) - k (1-g) (z-1) ]
            term = factor if self.gamma is None else factor - k * (1 - self.gamma) * z_minus_1
            end = len(q) - k
            r[end - len(term) : end] += sensitivity * term
        return q, r

    def polynomial(self, step_size: float) -> Floats:
        """The characteristic polynomial at this step size, highest power first."""
        q, r = self.parts()
        return q + step_size * r


def spectral_radius(polynomial: ArrayLike) -> float:
    """Largest root modulus: the factor by which iterates grow per step in the end."""
    return float(np.abs(np.roots(polynomial)).max(initial=0.0))


def spectral_radius_map(
    case: Quadratic, step_sizes: ArrayLike, delays: ArrayLike, gamma_of: GammaOf | None = None
) -> Floats:
    """Spectral radius at tau_fwd = delays[i], step_sizes[j], shape (len(delays), len(step_sizes)).

    gamma_of: T2's gamma from the gap tau_fwd - tau_bkwd, such as gamma_star; None: case.gamma.
    ValueError for a delay that the case does not allow.
    """
    steps = np.asarray(step_sizes, dtype=float)
    rows = []
    for delay in np.asarray(delays).tolist():
        here = replace(case, tau_fwd=delay)
        gap = here.tau_fwd - here.tau_bkwd
        if gamma_of is not None and gap:  # without a gap there is nothing to correct
            here = replace(here, gamma=gamma_of(gap))
        q, r = here.parts()
        companions = np.tile(np.eye(len(q) - 1, k=-1), (len(steps), 1, 1))
        companions[:, 0] = -(q + steps[:, None] * r)[:, 1:]  # q is monic and r[0] = 0
        rows.append(np.abs(np.linalg.eigvals(companions)).max(axis=1))
    return np.array(rows)


def threshold(case: Quadratic) -> float:
    """Smallest step size a > 0 with a root on the unit circle; every smaller one is stable.

    There z = e^(i theta), and a = -q/r must be real: Im(q conj r) = sum of s_m sin(m theta) = 0.
    Over sin(theta) that is a polynomial in cos(theta), all of whose roots can be had: no grid
    for a crossing to slip through. A root that only touches the circle counts too.
    """
    q, r = case.parts()
    x = chebroots(_sines_over_sine(q, r)).real
    theta = _polished(np.arccos(np.clip(x, -1 + 1e-12, 1 - 1e-12)), q, r)
    z = np.exp(1j * np.append(theta, np.pi))  # at z = -1 every a is real
    q_at, r_at = np.polyval(q, z), np.polyval(r, z)
    with np.errstate(all="ignore"):  # r = 0: crossed by no finite a
        a = -(q_at / r_at).real
        off_circle = np.abs(q_at + a * r_at) / (np.abs(q_at) + a * np.abs(r_at))
    return float(a[(a > 0) & (off_circle < 1e-8)].min())


def _polished(theta: Floats, q: Floats, r: Floats) -> Floats:
    """Newton on Im(q conj r) / sin(theta): near 0 a cosine has lost half of theta's digits.

    What began as a complex root ends anywhere: the caller keeps only crossings.
    """
    powers = np.arange(len(q))[::-1]
    columns = np.stack([q, r, 1j * powers * q, 1j * powers * r], axis=1)
    with np.errstate(all="ignore"):
        for _ in range(6):
            q_at, r_at, dq, dr = (np.exp(1j * np.outer(theta, powers)) @ columns).T
            height = (q_at * r_at.conj()).imag
            slope = (dq * r_at.conj() + q_at * dr.conj()).imag
            theta = theta - height / (slope - height / np.tan(theta))
    return theta


def _sines_over_sine(q: Floats, r: Floats) -> Floats:
    """Chebyshev coefficients, in cos(theta), of Im(q conj r) / sin(theta) on the unit circle."""
    products = np.correlate(q, r, "full")  # coefficient of e^(i m theta), m from degree to -degree
    degree = len(q) - 1
    series = (products[:degree] - products[:degree:-1])[::-1].copy()  # s_(m+1) goes with U_m
    for m in reversed(range(degree - 2)):  # U_m = 2 T_m + U_(m-2), and U_0 = T_0
        series[m] += series[m + 2]
    series[0] /= 2
    return series


def lemma1(tau: float, curvature: float = 1.0) -> float:
    """Threshold of a plain delay: (2/L) sin(pi / (4 tau + 2)), for fractional tau too."""
    _check_delay_and_curvature(tau, curvature)
    return 2 / curvature * math.sin(math.pi / (4 * tau + 2))


def lemma2(tau_fwd: float, tau_bkwd: float, discrepancy: float, curvature: float = 1.0) -> float:
    """Upper bound on the threshold with discrepancy: min(2 / (Delta gap), Lemma 1).

    ValueError unless Delta >= 0 and tau_fwd >= tau_bkwd. The threshold tends to 1 / (Delta gap).
    """
    if not (0 <= discrepancy < math.inf and 0 <= tau_bkwd <= tau_fwd):
        raise ValueError("Lemma 2 needs a finite discrepancy >= 0, tau_fwd >= tau_bkwd >= 0")
    sensitivity = discrepancy * (tau_fwd - tau_bkwd)
    return min(2 / sensitivity if sensitivity else math.inf, lemma1(tau_fwd, curvature))


def lemma3(tau: float, curvature: float = 1.0) -> float:
    """Upper bound, very loose, on the threshold with any momentum: twice Lemma 1."""
    return 2 * lemma1(tau, curvature)


def fastest_without_oscillation(tau: float, curvature: float = 1.0) -> float:
    """Step size of the double real root of z^tau (z-1) + a L: tau^tau / (L (tau+1)^(tau+1))."""
    _check_delay_and_curvature(tau, curvature)
    return (tau / (tau + 1)) ** tau / (tau + 1) / curvature


def gamma_star(gap: float) -> float:
    """T2's gamma in the theory: 1 - 2/(gap+1), or 0.0, the last update alone, for a gap below 1.

    The updates that delta averages are then (gap-1)/2 steps old in the mean, as those it replaces.
    gap = tau_fwd - tau_bkwd > 0 in optimizer steps, fractional or not.
    """
    _check_positive("gap", gap)
    return max(0.0, 1 - 2 / (gap + 1))


def gamma(decay: float, gap: float) -> float:
    """T2's gamma from its decay constant: D^(1/gap), for 0 < D < 1 and gap > 0 (section 2)."""
    _check_positive("gap", gap)
    if not 0 < decay < 1:
        raise ValueError(f"the decay constant D must lie between 0 and 1, got {decay}")
    return decay ** (1 / gap)


def iterates(
    case: Quadratic, step_size: float, steps: int, w0: float = 1, noise: float = 0, seed: int = 0
) -> Floats:
    """w[0..steps] of the recurrence itself, on a history of weights that was w0 before step 0.

    noise: standard deviation of a Gaussian added to every gradient. T2 keeps
    delta[t+1] = g delta[t] + (1-g) (w[t+1] - w[t]) and reads w[t-s] - (tau_fwd - s) delta[t-s]: the
    delta as old as the weights it corrects. Divergence overflows to inf, then nan.
    """
    reads = list(case.reads())
    keep = 1.0 if case.gamma is None else case.gamma  # without T2 delta stays 0
    weights = [float(w0)] * (case.tau_fwd + 2)
    deltas = [0.0] * (case.tau_fwd + 1)
    for shock in np.random.default_rng(seed).normal(0.0, noise, steps).tolist():
        gradient = shock
        for sensitivity, s in reads:
            gradient += sensitivity * (weights[-1 - s] - (case.tau_fwd - s) * deltas[-1 - s])
        update = case.momentum * (weights[-1] - weights[-2]) - step_size * gradient
        weights.append(weights[-1] + update)
        deltas.append(keep * deltas[-1] + (1 - keep) * update)
    return np.array(weights[case.tau_fwd + 1 :])


def _check_positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be finite and > 0, got {value}")


def _check_delay_and_curvature(tau: float, curvature: float) -> None:
    if not 0 <= tau < math.inf:
        raise ValueError(f"a delay must be finite and >= 0, got {tau}")
    _check_positive("curvature", curvature)
