"""Lesson 03: characteristic polynomials, the edge of stability, and a root on the circle."""

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
PAIR = "a root and a number of steps, such as (0.5 + 0.5j, 8)"
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
            return f"for tau={tau}, rate={rate:.3g} yours has degree {found}"
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
            terms = " + ".join(f"{c:.3g} w[{at + k}]" for c, k in
                               zip(answer, range(tau + 1, -1, -1), strict=False))  # fmt: skip
            return (
                f"for tau={tau}, rate={rate:.3g} a simulated course of w gives "
                f"{terms} = {float(newest_first[at] @ answer):.3g}"
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


# 3.4


def as_pair(answer: Any) -> tuple[complex, int]:
    """(root, steps); ValueError for anything else."""
    try:
        root, steps = answer
        root = complex(root)
        whole = float(steps) == int(steps) and not isinstance(steps, bool)
    except (TypeError, ValueError):
        whole = False
    if not whole or int(steps) < 1:
        raise ValueError(f"An answer is {PAIR}, and this one is {answer!r}.")
    return root, int(steps)


def is_a_root(answer: tuple[complex, int]) -> str:
    """A number that is not a root of z (z - 1) + 1."""
    z = answer[0]
    value = z * (z - 1) + 1
    return "" if abs(value) < 1e-3 else f"yours gives {value:.3g}"


def comes_back(answer: tuple[complex, int]) -> str:
    """A number of steps after which the weight is not where it was."""
    steps, w = answer[1], [1.0, 1.0]
    for _ in range(steps + 2):
        w.append(w[-1] - w[-2])
    said = f"w goes {', '.join(f'{x:g}' for x in w[1:9])}, ..."
    return (
        "" if w[1:3] == w[1 + steps : 3 + steps] else f"after {steps} steps it is elsewhere: {said}"
    )


def is_the_first_time(answer: tuple[complex, int]) -> str:
    """A multiple of the period."""
    return "" if answer[1] <= 6 else f"it has been back before step {answer[1]}"


def on_the_circle() -> tuple[complex, int]:
    root = complex(0.5, 3**0.5 / 2)  # z^2 - z + 1 = 0: two conjugate roots whose product is 1
    return root, 6  # the angle is 60 degrees, a sixth of a turn


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
    Exercise(
        "3.4",
        PAIR,
        (
            Property("the root solves z (z - 1) + 1 = 0", is_a_root),
            Property("after that many steps w is back where it was", comes_back),
            Property("it is the first time", is_the_first_time),
        ),
        (
            "z^2 - z + 1 = 0 is quadratic: its roots are conjugate, and their product is the last "
            "coefficient, 1. So what is the modulus of each?",
            "z = (1 + sqrt(-3)) / 2: at which angle does it lie? cos(angle) = 1/2.",
            "A step turns by 60 degrees: how many make a full turn? z is complex(0.5, 3**0.5 / 2).",
        ),
        on_the_circle,
        read=as_pair,
    ),
)
