"""The scalar quadratic under delay: polynomials, thresholds, simulated iterates (PAPER.md, section 3).

One weight w, loss (L/2) w^2, one step a per optimizer update:

    w[t+1] = w[t] - a * [ (L + Delta) u_fwd - (Delta - Phi) u_bkwd - Phi u_recomp ]

where u_x = w[t - tau_x] is what that pass read. Every characteristic polynomial is p = q + a r, stable
iff all its roots lie inside the unit circle. Delays are whole optimizer steps; a is dimensionless if L is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np
from numpy.polynomial.chebyshev import chebroots
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Quadratic:
    """One row of PAPER.md's table; what is left at its default is absent.

    tau_fwd, tau_bkwd, tau_recomp: delays in optimizer steps, tau_fwd >= tau_recomp >= tau_bkwd.
    curvature L > 0. discrepancy Delta, phi Phi: the gradient's sensitivity to the backward's and the
    recompute's reads, in units of L. gamma: T2's averaging, None without T2 (0.0 is T2 with the last
    update alone). momentum: heavy ball, 0 <= b < 1.

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
        for name in ("tau_fwd", "tau_bkwd", "tau_recomp"):
            delay = getattr(self, name)
            if not (isinstance(delay, Integral) and delay >= 0 or name == "tau_recomp" and delay is None):
                raise ValueError(f"{name} must be a whole number of steps >= 0, got {delay!r}")
        recomp = self.tau_fwd if self.tau_recomp is None else self.tau_recomp
        if not self.tau_bkwd <= recomp <= self.tau_fwd:
            raise ValueError(f"need tau_bkwd <= tau_recomp <= tau_fwd, got {self}")
        _check_positive("curvature", self.curvature)
        if not (math.isfinite(self.discrepancy) and math.isfinite(self.phi)):
            raise ValueError(f"discrepancy and phi must be finite, got {self.discrepancy} and {self.phi}")
        if not (0 <= self.momentum < 1 and 0 <= (self.gamma or 0) < 1):
            raise ValueError(f"need 0 <= momentum, gamma < 1, got {self.momentum} and {self.gamma}")
        if self.phi and self.tau_recomp is None:
            raise ValueError("phi is the sensitivity to a recompute: give tau_recomp too")
        if self.momentum and not self._is_plain_delay():
            raise ValueError("with momentum the theory covers a plain delay tau_fwd >= 1 only: "
                             "drop discrepancy, recompute and gamma, or set momentum=0")

    def _is_plain_delay(self) -> bool:
        extras = self.discrepancy or self.tau_recomp is not None or self.gamma is not None
        return self.tau_fwd >= 1 and not extras

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
            z_minus_b = np.array([1.0, -self.momentum])
            q = _times_z(np.convolve(z_minus_1, z_minus_b), self.tau_fwd - 1)
            return q, _pad(np.array([self.curvature]), len(q))
        factor = np.array([1.0] if self.gamma is None else [1.0, -self.gamma])  # 1, or z - g with T2
        q = _times_z(np.convolve(z_minus_1, factor), self.tau_fwd)
        r = np.zeros_like(q)
        for sensitivity, delay in self.reads():  # c z^k [ (z-g) - k (1-g) (z-1) ],  k = tau_fwd - delay
            k = self.tau_fwd - delay
            term = factor if self.gamma is None else factor - k * (1 - self.gamma) * z_minus_1
            r += sensitivity * _pad(_times_z(term, k), len(q))
        return q, r

    def polynomial(self, step_size: float) -> Floats:
        """Coefficients of the characteristic polynomial at this step size, as numpy.roots wants them."""
        q, r = self.parts()
        return q + step_size * r


def _times_z(coefficients: Floats, power: int) -> Floats:
    return np.pad(coefficients, (0, power))


def _pad(coefficients: Floats, length: int) -> Floats:
    return np.pad(coefficients, (length - len(coefficients), 0))


def _check_positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be finite and > 0, got {value}")


def spectral_radius(polynomial: ArrayLike) -> float:
    """Largest root modulus: the factor by which iterates finally grow per step; below 1 is stable."""
    return float(np.abs(np.roots(polynomial)).max(initial=0.0))


def spectral_radius_map(case: Quadratic, step_sizes: Sequence[float] | Floats,
                        delays: Sequence[int] | NDArray[np.int_],
                        gamma_of: Callable[[float], float] | None = None) -> Floats:
    """Spectral radius at tau_fwd = delays[i], step_sizes[j], shape (len(delays), len(step_sizes)).

    gamma_of: T2's gamma from the gap tau_fwd - tau_bkwd, for example gamma_star; default case.gamma.
    A delay that the case does not allow raises ValueError, as in Quadratic.
    """
    steps = np.asarray(step_sizes, dtype=float)
    radius = np.empty((len(delays), len(steps)))
    for row, delay in zip(radius, delays, strict=True):
        here = replace(case, tau_fwd=delay)
        if gamma_of is not None and here.tau_fwd > here.tau_bkwd:  # without a gap nothing to correct
            here = replace(here, gamma=gamma_of(here.tau_fwd - here.tau_bkwd))
        q, r = here.parts()
        companions = np.tile(np.eye(len(q) - 1, k=-1), (len(steps), 1, 1))
        companions[:, 0] = -(q + steps[:, None] * r)[:, 1:]  # q is monic and r[0] = 0
        row[:] = np.abs(np.linalg.eigvals(companions)).max(axis=1)
    return radius


def threshold(case: Quadratic) -> float:
    """Smallest step size a > 0 with a root on the unit circle; every smaller one is stable.

    There z = e^(i theta) and a = -q(z)/r(z) must be real, so Im(q conj r) = sum_m s_m sin(m theta) = 0.
    Over sin(theta) this is a polynomial in x = cos(theta), so no crossing can slip through a grid.
    A root that touches the circle and returns counts too.
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
    """Newton's steps on Im(q conj r) / sin(theta): near 0, cos(theta) has lost half of theta's digits.

    Roots that were complex end anywhere; the caller drops what is no crossing.
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
    """The exact threshold of a plain delay: (2/L) sin(pi / (4 tau + 2)). Lemma 1; tau may be fractional."""
    _check_delay(tau)
    _check_positive("curvature", curvature)
    return 2 / curvature * math.sin(math.pi / (4 * tau + 2))


def lemma2(tau_fwd: float, tau_bkwd: float, discrepancy: float, curvature: float = 1.0) -> float:
    """An upper bound on the threshold with discrepancy: min(2 / (Delta gap), Lemma 1). Lemma 2.

    Needs Delta >= 0 and tau_fwd >= tau_bkwd. For large Delta the threshold itself tends to half of it.
    """
    _check_delay(tau_bkwd)
    if not (0 <= discrepancy < math.inf and tau_fwd >= tau_bkwd):
        raise ValueError("Lemma 2 needs a finite discrepancy >= 0 and tau_fwd >= tau_bkwd, "
                         f"got {discrepancy}, {tau_fwd} and {tau_bkwd}")
    sensitivity = discrepancy * (tau_fwd - tau_bkwd)
    return min(2 / sensitivity if sensitivity else math.inf, lemma1(tau_fwd, curvature))


def lemma3(tau: float, curvature: float = 1.0) -> float:
    """A very loose upper bound on the threshold with any momentum: twice Lemma 1. Lemma 3."""
    return 2 * lemma1(tau, curvature)


def fastest_without_oscillation(tau: float, curvature: float = 1.0) -> float:
    """Step size of the double real root of z^tau (z-1) + a L: tau^tau / (L (tau+1)^(tau+1))."""
    _check_delay(tau)
    _check_positive("curvature", curvature)
    return (tau / (tau + 1)) ** tau / (tau + 1) / curvature


def gamma_star(gap: float) -> float:
    """T2's gamma in the theory, 1 - 2/(gap+1): delta's updates are then as old, on average, as the gap's.

    gap = tau_fwd - tau_bkwd > 0 in optimizer steps. Below one step it is 0.0: the last update alone.
    """
    _check_positive("gap", gap)
    return max(0.0, 1 - 2 / (gap + 1))


def gamma(decay: float, gap: float) -> float:
    """T2's gamma from its decay constant D: D^(1/gap). PAPER.md, section 2. Needs 0 < D < 1, gap > 0."""
    _check_positive("gap", gap)
    if not 0 < decay < 1:
        raise ValueError(f"the decay constant D must lie between 0 and 1, got {decay}")
    return decay ** (1 / gap)


def _check_delay(tau: float) -> None:
    if not 0 <= tau < math.inf:
        raise ValueError(f"a delay must be finite and >= 0, got {tau}")


def iterates(case: Quadratic, step_size: float, steps: int, w0: float = 1.0,
             noise: float = 0.0, seed: int = 0) -> Floats:
    """w[0..steps] of the recurrence itself, run on a history of weights; before step 0 all were w0.

    noise: standard deviation of a Gaussian added to each gradient. T2's reads are
    w[t-s] - (tau_fwd - s) delta[t-s]: delta is as old as the weights it corrects. A run that
    diverges far enough overflows to inf, then nan.
    """
    shocks = noise * np.random.default_rng(seed).standard_normal(steps)
    weights = [float(w0)] * (case.tau_fwd + 1)
    deltas = [0.0] * (case.tau_fwd + 1)
    fresh = 0.0 if case.gamma is None else 1 - case.gamma  # without T2 delta stays 0
    for shock in shocks.tolist():
        gradient = shock
        for sensitivity, delay in case.reads():
            corrected = weights[-1 - delay] - (case.tau_fwd - delay) * deltas[-1 - delay]
            gradient += sensitivity * corrected
        coasting = case.momentum * (weights[-1] - weights[-2]) if case.momentum else 0.0
        weights.append(weights[-1] + coasting - step_size * gradient)
        deltas.append((1 - fresh) * deltas[-1] + fresh * (weights[-1] - weights[-2]))
    return np.array(weights[case.tau_fwd:])
