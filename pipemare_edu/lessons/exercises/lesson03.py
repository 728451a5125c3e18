"""Lesson 03: characteristic polynomials, and the edge of stability."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...plan.theory import Quadratic, spectral_radius
from ..exercise import Exercise, Property

COEFFICIENTS = "a function of (tau, rate) that returns a list of coefficients, highest power first"
ALPHA = "a function of (tau, curvature) that returns a rate"
EDGE = "a function of (tau, momentum) that returns a rate"
CASES = 6
BESIDE = 1e-3  # how far beside a rate its two sides are looked at, as a share
CLOSE = 1e-6  # of itself, for a root or a polynomial's value


def _random(seed: int, longest: int = 8) -> Iterator[tuple[int, float]]:
    """(delay, rate) of a few small cases, a short delay among them."""
    draw = np.random.default_rng(seed)
    for n in range(CASES):
        yield (1 if n == 0 else int(draw.integers(2, longest))), float(draw.uniform(0.05, 0.9))


# 3.1


def is_a_list(p: Callable[..., Any]) -> str:
    """What is no list of finite numbers."""
    for tau, rate in _random(1):
        answer = p(tau, rate)
        try:
            numbers = np.asarray(answer, dtype=complex)
        except (TypeError, ValueError):
            numbers = np.array(math.nan)
        if numbers.ndim != 1 or not len(numbers) or not np.isfinite(numbers).all():
            return f"for tau={tau}, rate={rate:.3g} you return {answer!r}"
    return ""


def right_degree(p: Callable[..., Any]) -> str:
    """A polynomial whose degree is not tau + 1."""
    for tau, rate in _random(1):
        found = len(np.trim_zeros(np.asarray(p(tau, rate)), "f")) - 1
        if found != tau + 1:
            what = f"has degree {found}" if found >= 0 else "is zero throughout"
            return f"for tau={tau}, rate={rate:.3g} yours {what}"
    return ""


def describes_the_recurrence(p: Callable[..., Any]) -> str:
    """A polynomial that simulated weights do not fulfil."""
    for tau, rate in _random(2):
        answer = np.asarray(p(tau, rate))
        w = list(np.random.default_rng(tau).normal(size=tau + 1))  # any past will do
        for _ in range(2 * tau + 4):
            w.append(w[-1] - rate * w[-1 - tau])
        windows = np.lib.stride_tricks.sliding_window_view(w, len(answer))
        newest_first = windows[:, ::-1]
        left = np.abs(newest_first @ answer) / (np.abs(newest_first) @ np.abs(answer))
        if left.max() > CLOSE:
            at = int(left.argmax())
            turned = np.allclose(newest_first @ answer[::-1], 0)
            terms = "".join(f" {'-' if c < 0 else '+'} {abs(c):.3g} w[{at + k}]" for c, k in
                            zip(answer, range(tau + 1, -1, -1), strict=False) if c)  # fmt: skip
            return (
                f"for tau={tau}, rate={rate:.3g} a simulated course of w gives "
                f"{terms.removeprefix(' + ').strip()} = {float(newest_first[at] @ answer):.3g}"
                + ("; from last to first your list would fit" if turned else "")
            )
    return ""


def characteristic(tau: int, rate: float) -> list[float]:
    return [1, -1] + [0] * (tau - 1) + [rate]


# 3.2 and 3.3: a rate for each of some cases, (delay, curvature) or (delay, momentum)

Cases = Sequence[tuple[int, float]]
CaseOf = Callable[[int, float], Quadratic]


def _cases(seed: int, known: Cases, longest: int, low: float, high: float) -> Cases:
    draw = np.random.default_rng(seed)
    return [
        *known,
        *((int(draw.integers(2, longest)), float(draw.uniform(low, high))) for _ in range(CASES)),
    ]


PLAIN = _cases(3, ((0, 1.0), (1, 1.0), (10, 1.0)), 40, 0.2, 30)
MOMENTUM = _cases(4, ((10, 0.9), (1, 0.9), (1, 0.5)), 15, 0.1, 0.95)


def above_0(cases: Cases, name: str) -> Callable[..., str]:
    """The fault of returning anything but a finite number above 0."""

    def fault(rate: Callable[..., Any]) -> str:
        for tau, value in cases:
            answer = rate(tau, value)
            try:
                good = math.isfinite(answer) and answer > 0
            except TypeError:
                good = False
            if not good:
                return f"for tau={tau}, {name}={value:.3g} you return {answer!r}"
        return ""

    return fault


def at_the_edge(cases: Cases, name: str, case_of: CaseOf) -> Callable[..., str]:
    """The fault of a rate that is not where the largest root reaches the circle."""

    def fault(rate: Callable[..., Any]) -> str:
        for tau, value in cases:
            case, answer = case_of(tau, value), float(rate(tau, value))
            said = f"for tau={tau}, {name}={value:.3g} you say {answer:.6g}, and a thousandth"
            if spectral_radius(case.polynomial(answer * (1 - BESIDE))) >= 1:
                return f"{said} below that w already grows"
            if spectral_radius(case.polynomial(answer * (1 + BESIDE))) <= 1:
                return f"{said} above that w still shrinks"
        return ""

    return fault


def _rates(cases: Cases, name: str, case_of: CaseOf) -> tuple[Property, Property]:
    return (
        Property("the result is a number above 0", above_0(cases, name)),
        Property(
            "w shrinks just below your rate and grows just above it",
            at_the_edge(cases, name, case_of),
        ),
    )


def alpha_max(tau: int, curvature: float) -> float:
    return 2 / curvature * math.sin(math.pi / (4 * tau + 2))


def edge(tau: int, momentum: float) -> float:
    def grows(rate):
        polynomial = [1, -(1 + momentum), momentum] + [0] * (tau - 1)
        polynomial[-1] += rate
        return max(abs(np.roots(polynomial))) > 1

    low, high = 0.0, 4 * math.sin(math.pi / (4 * tau + 2))  # Lemma 3: unstable by then
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if grows(middle) else (middle, high)
    return low


EXERCISES: Sequence[Exercise] = (
    Exercise(
        "3.1",
        COEFFICIENTS,
        (
            Property("the result is a list of finite numbers", is_a_list),
            Property("the polynomial of a delay tau has degree tau + 1", right_degree),
            Property(
                "its coefficients, times tau + 2 successive weights (newest first), add up to zero",
                describes_the_recurrence,
            ),
        ),
        (
            "Put w[t] = z^t into w[t+1] = w[t] - rate * w[t-tau]; bring everything to the left.",
            "Divide by z^(t-tau): z^(tau+1) - z^tau + rate = 0. Which powers have a coefficient?",
            "1 for z^(tau+1), -1 for z^tau, then tau - 1 zeros, then rate: tau + 2 numbers.",
        ),
        characteristic,
        function=True,
    ),
    Exercise(
        "3.2",
        ALPHA,
        _rates(PLAIN, "L", lambda tau, curvature: Quadratic(tau, curvature=curvature)),
        (
            "Lemma 1 stands above: alpha_max = (2/L) sin(pi / (4 tau + 2)).",
            "math.sin takes radians, and math.pi is there. Without delay it must give 2/L.",
            "return 2 / curvature * math.sin(math.pi / (4 * tau + 2))",
        ),
        alpha_max,
        function=True,
    ),
    Exercise(
        "3.3",
        EDGE,
        _rates(MOMENTUM, "momentum", lambda tau, b: Quadratic(tau, momentum=b)),
        (
            "Write a test first: build the polynomial of z^(tau-1) (z-1)(z-b) + rate, and ask "
            "whether the largest of its roots (numpy.roots) lies outside the circle.",
            "(z-1)(z-b) has coefficients 1, -(1+b), b. Then come tau - 1 zeros, and the rate is "
            "added to the last coefficient. (For tau = 1 that is b itself.)",
            "Bisect: low = 0 shrinks, high = Lemma 3's bound grows. Forty times: the middle "
            "replaces high if it grows, else low.",
        ),
        edge,
        function=True,
    ),
)
