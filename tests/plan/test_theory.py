"""Every number and every row of PAPER.md, section 3, against simulated recurrences."""

import math

import numpy as np
import pytest

from pipemare_edu.plan.theory import (
    Quadratic,
    fastest_without_oscillation,
    gamma,
    gamma_star,
    iterates,
    lemma1,
    lemma2,
    lemma3,
    spectral_radius,
    spectral_radius_map,
    threshold,
)

ROWS = {
    "delay": Quadratic(10, curvature=2.0),
    "discrepancy": Quadratic(10, 4, discrepancy=5.0),
    "T2": Quadratic(10, 4, discrepancy=5.0, gamma=0.6),
    "momentum": Quadratic(10, momentum=0.9, curvature=0.5),
    "recompute": Quadratic(10, 1, discrepancy=5.0, tau_recomp=4, phi=2.5),
    "recompute + T2": Quadratic(10, 1, discrepancy=5.0, tau_recomp=4, phi=2.5, gamma=0.8),
}
rows = pytest.mark.parametrize("case", ROWS.values(), ids=ROWS.keys())


def six_digits(value):
    return pytest.approx(value, abs=5.1e-7)


def product(*factors):
    """Polynomial product, for the table's rows typed in as they stand."""
    result = np.ones(1)
    for factor in factors:
        result = np.convolve(result, factor)
    return result


def z_to(power):
    return np.eye(1, power + 1).ravel()


def test_polynomials_are_the_rows_of_the_table():
    a, L, D, F, g, b, tf, tb, tr = 0.3, 2.0, 5.0, 1.5, 0.6, 0.9, 7, 2, 4
    kb, kr = tf - tb, tf - tr
    one, z1, zg, zb = np.ones(1), np.array([1, -1]), np.array([1, -g]), np.array([1, -b])

    def read(k):
        return np.polysub(product(z_to(k), zg), k * (1 - g) * product(z1, z_to(k)))

    add = np.polyadd
    recomputed = add((L + D) * one, add(-(D - F) * z_to(kb), -F * z_to(kr)))
    recomputed_t2 = add((L + D) * zg, add(-(D - F) * read(kb), -F * read(kr)))
    table = [
        (Quadratic(tf, curvature=L), add(product(z_to(tf), z1), a * L * one)),
        (
            Quadratic(tf, tb, L, D),
            add(product(z_to(tf), z1), a * add((L + D) * one, -D * z_to(kb))),
        ),
        (
            Quadratic(tf, tb, L, D, g),
            add(product(z1, zg, z_to(tf)), a * add((L + D) * zg, -D * read(kb))),
        ),
        (Quadratic(tf, curvature=L, momentum=b), add(product(z_to(tf - 1), z1, zb), a * L * one)),
        (Quadratic(tf, tb, L, D, tau_recomp=tr, phi=F), add(product(z_to(tf), z1), a * recomputed)),
        (
            Quadratic(tf, tb, L, D, g, tau_recomp=tr, phi=F),
            add(product(z1, zg, z_to(tf)), a * recomputed_t2),
        ),
    ]
    for case, expected in table:
        np.testing.assert_allclose(case.polynomial(a), expected, atol=1e-14)


@rows
@pytest.mark.parametrize("factor", [0.3, 0.999, 1.2])
def test_iterates_obey_the_polynomial(case, factor):
    """sum_j p_j w[t-j] = 0 once the recursion has left its constant history behind."""
    step_size = factor * threshold(case)
    w = iterates(case, step_size, 60, w0=-1.7)
    p = case.polynomial(step_size)
    residual = np.convolve(w, p, "valid")
    assert len(residual) > 40 and np.abs(residual).max() < 1e-10 * np.abs(w).max()


@rows
def test_iterates_decay_below_the_threshold_and_grow_above(case):
    def late_to_early(factor):
        w = np.abs(iterates(case, factor * threshold(case), 6000))
        return w[-500:].max() / w[500:1000].max()

    assert late_to_early(0.99) < 0.9
    assert late_to_early(1.01) > 1.1


@rows
@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_growth_rate_of_the_iterates_is_the_spectral_radius(case, factor):
    step_size = factor * threshold(case)
    w = np.abs(iterates(case, step_size, 6000))
    rate = (w[5800:6000].max() / w[3000:3200].max()) ** (1 / 2800)
    assert rate == pytest.approx(spectral_radius(case.polynomial(step_size)), abs=2e-4)


def random_case(rng):
    tau_fwd = int(rng.integers(0, 16))
    tau_bkwd = int(rng.integers(0, tau_fwd + 1))
    curvature = float(rng.choice([0.01, 1.0, 7.0]))
    if tau_fwd and rng.random() < 0.2:
        return Quadratic(tau_fwd, curvature=curvature, momentum=float(rng.uniform(0, 0.99)))
    discrepancy, phi = (float(x) for x in curvature * rng.normal(0, 6, 2))
    averaging = float(rng.choice([0, 0.3, 0.9, 0.999])) if rng.random() < 0.6 else None
    if rng.random() < 0.5:
        return Quadratic(tau_fwd, tau_bkwd, curvature, discrepancy, averaging)
    tau_recomp = int(rng.integers(tau_bkwd, tau_fwd + 1))
    return Quadratic(
        tau_fwd, tau_bkwd, curvature, discrepancy, averaging, tau_recomp=tau_recomp, phi=phi
    )


@pytest.mark.parametrize("seed", range(150))
def test_threshold_is_the_first_crossing_of_a_scan(seed):
    case = random_case(np.random.default_rng(seed))
    found = threshold(case)
    scan = found * np.array([*np.linspace(0.01, 0.99, 99), 1 - 1e-6, 1, 1 + 1e-6, 1.001])
    radius = spectral_radius_map(case, scan, [case.tau_fwd])[0]
    assert radius[:-3].max() < 1
    assert radius[-3] == pytest.approx(1, abs=1e-8)
    assert radius[-1] > 1


@pytest.mark.parametrize(
    "case",
    [
        Quadratic(55, 26, discrepancy=100.0, gamma=gamma(0.99, 29)),
        Quadratic(7, 4, discrepancy=1e4, gamma=0.999999, tau_recomp=5, phi=-3.0),
        Quadratic(20, discrepancy=1e8),
        Quadratic(20, discrepancy=-1.0),
        Quadratic(6, momentum=1 - 1e-6),
    ],
)
def test_threshold_of_ill_conditioned_cases(case):
    """Crossings close to z = 1, or a vanishing leading coefficient."""
    found = threshold(case)
    below, at, above = spectral_radius_map(
        case, found * np.array([1 - 1e-3, 1, 1 + 1e-3]), [case.tau_fwd]
    )[0]
    assert below < 1 < above and at == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize("tau", [0, 1, 2, 5, 10, 20, 40, 213])
@pytest.mark.parametrize("curvature", [1e-3, 1.0, 7.0])
def test_lemma_1_is_the_threshold_to_ten_digits(tau, curvature):
    assert threshold(Quadratic(tau, curvature=curvature)) == pytest.approx(
        lemma1(tau, curvature), rel=1e-10
    )


def test_lemma_1_numbers():
    expected = {0: 2, 1: 1, 2: 0.618034, 5: 0.284630, 10: 0.149460, 20: 0.076605, 40: 0.038783}
    for tau, value in expected.items():
        assert lemma1(tau) == six_digits(value)
    assert lemma1(2, 4.0) == six_digits(0.618034 / 4)


@pytest.mark.parametrize(
    "discrepancy, plain, at_star, at_e2, at_half",
    [
        (1, 0.059279, 0.131297, 0.131084, 0.078577),
        (5, 0.017556, 0.097617, 0.097106, 0.028998),
        (10, 0.009348, 0.079545, 0.078910, 0.016492),
    ],
)
def test_thresholds_at_10_0(discrepancy, plain, at_star, at_e2, at_half):
    def at(averaging):
        return threshold(Quadratic(10, discrepancy=discrepancy, gamma=averaging))

    assert at(None) == six_digits(plain)
    assert at(gamma_star(10)) == six_digits(at_star)
    assert at(gamma(math.exp(-2), 10)) == six_digits(at_e2)
    assert at(gamma(0.5, 10)) == six_digits(at_half)


@pytest.mark.parametrize(
    "case, expected",
    [
        (Quadratic(40, discrepancy=5), 0.004408),
        (Quadratic(40, discrepancy=5, gamma=gamma_star(40)), 0.024560),
        (Quadratic(10, 4, discrepancy=5), 0.027341),
        (Quadratic(10, discrepancy=5, tau_recomp=4, phi=2.5), 0.021374),
        (Quadratic(10, discrepancy=5, tau_recomp=4, phi=2.5, gamma=gamma_star(10)), 0.084198),
        (Quadratic(10, momentum=0.9), 0.011390),
    ],
)
def test_other_thresholds(case, expected):
    assert threshold(case) == six_digits(expected)


def test_lemma_2_is_an_upper_bound_and_twice_the_limit():
    rng = np.random.default_rng(0)
    for _ in range(100):
        tau_fwd = int(rng.integers(1, 20))
        tau_bkwd = int(rng.integers(0, tau_fwd))
        discrepancy, curvature = rng.exponential(5) + 1e-3, rng.exponential(1) + 0.1
        found = threshold(Quadratic(tau_fwd, tau_bkwd, curvature, discrepancy))
        assert found < lemma2(tau_fwd, tau_bkwd, discrepancy, curvature) * (1 + 1e-12)
    assert lemma2(10, 0, 5.0) == 2 / 50
    assert lemma2(10, 0, 1e-9, 2.0) == lemma2(10, 10, 5.0, 2.0) == lemma1(10, 2.0)
    assert threshold(Quadratic(10, 4, discrepancy=1e6)) == pytest.approx(1 / (1e6 * 6), rel=1e-5)


def test_lemma_3_is_a_loose_upper_bound():
    assert lemma3(10) == six_digits(0.298920)
    assert lemma3(10, 4.0) == six_digits(0.298920 / 4)
    for b in (0.1, 0.5, 0.9, 0.99):
        assert threshold(Quadratic(1, momentum=b)) == pytest.approx(1 - b, rel=1e-9)
        assert all(threshold(Quadratic(tau, momentum=b)) < lemma3(tau) for tau in (1, 3, 10, 30))


@pytest.mark.parametrize("tau", [0, 1, 2, 5, 10])
def test_fastest_without_oscillation_has_the_least_real_dominant_root(tau):
    best = fastest_without_oscillation(tau, 2.0)
    assert best == pytest.approx(tau**tau / (2 * (tau + 1) ** (tau + 1)))
    case = Quadratic(tau, curvature=2.0)
    assert spectral_radius(case.polynomial(best)) == pytest.approx(tau / (tau + 1), abs=1e-6)
    assert (iterates(case, 0.999 * best, 100) > 0).all()
    assert (iterates(case, 1.05 * best, 100) < 0).any()


def test_gammas():
    assert [gamma_star(gap) for gap in (0.25, 1, 3, 10)] == pytest.approx([0, 0, 0.5, 9 / 11])
    assert gamma_star(1e4) ** 1e4 == pytest.approx(math.exp(-2), rel=1e-6)
    assert gamma(0.5, 10) ** 10 == pytest.approx(0.5)
    assert gamma(0.5, 0.5) == 0.25


def test_t2_at_gamma_star_is_exact_for_a_gap_of_one():
    corrected = iterates(Quadratic(6, 5, discrepancy=9.0, gamma=gamma_star(1)), 0.1, 200)
    np.testing.assert_allclose(corrected, iterates(Quadratic(6), 0.1, 200), atol=1e-12)


def test_iterates_start_from_a_constant_history():
    """By hand: tau = 2, so three steps see w0, and the fourth reads w[1] = 0.5."""
    assert iterates(Quadratic(2, curvature=2.0), 0.25, 4).tolist() == [1, 0.5, 0, -0.5, -0.75]
    w = iterates(Quadratic(1, momentum=0.5), 0.5, 3, w0=2.0)
    assert w.tolist() == [2, 1, -0.5, -1.75]
    # delta after step 0 is half of w[1] - w[0] = -0.5; step 1 reads u_fwd = 1, u_bkwd = 0.5 + 0.25.
    w = iterates(Quadratic(1, discrepancy=1.0, gamma=0.5), 0.5, 2)
    assert w.tolist() == [1, 0.5, 0.5 - 0.5 * (2 * 1 - 0.75)]


def test_noise_is_seeded_and_enters_the_gradient():
    case = Quadratic(3)
    quiet, noisy = iterates(case, 0.1, 50), iterates(case, 0.1, 50, noise=2.0, seed=1)
    assert (noisy == iterates(case, 0.1, 50, noise=2.0, seed=1)).all()
    assert (noisy[1:] != iterates(case, 0.1, 50, noise=2.0, seed=2)[1:]).all()
    first = -0.1 * np.random.default_rng(1).normal(0, 2.0)
    assert noisy[1] - quiet[1] == pytest.approx(first)


def test_iterates_of_a_wild_run_overflow_without_an_error():
    with np.errstate(all="raise"):
        assert not np.isfinite(iterates(Quadratic(1), 1e3, 2000)[-1])


def test_spectral_radius():
    assert spectral_radius([2, -3, 1]) == pytest.approx(1)
    assert spectral_radius([1, 0, 0.25]) == pytest.approx(0.5)
    assert spectral_radius([1, 0, 0]) == 0
    assert spectral_radius([5]) == 0


def test_map_agrees_with_single_points():
    steps, delays = [0.0, 0.01, 0.3], range(4, 9)
    case = Quadratic(4, 4, discrepancy=3.0)
    radius = spectral_radius_map(case, steps, np.array(delays), gamma_of=gamma_star)
    assert radius.shape == (5, 3)
    for i, delay in enumerate(delays):
        averaging = gamma_star(delay - 4) if delay > 4 else None
        here = Quadratic(delay, 4, discrepancy=3.0, gamma=averaging)
        for j, a in enumerate(steps):
            assert radius[i, j] == pytest.approx(spectral_radius(here.polynomial(a)), abs=1e-9)
    fixed = spectral_radius_map(Quadratic(4, 4, discrepancy=3.0, gamma=0.5), steps, [7])
    expected = spectral_radius(Quadratic(7, 4, discrepancy=3.0, gamma=0.5).polynomial(0.3))
    assert fixed[0, 2] == pytest.approx(expected)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(tau_fwd=-1), "tau_fwd must be a whole number"),
        (dict(tau_fwd=1.5), "tau_fwd must be a whole number"),
        (dict(tau_fwd=3, tau_bkwd=-1), "tau_bkwd must be a whole number"),
        (dict(tau_fwd=3, tau_recomp=2.5), "tau_recomp must be a whole number"),
        (dict(tau_fwd=3, tau_bkwd=4), "tau_fwd >= tau_recomp >= tau_bkwd"),
        (dict(tau_fwd=3, tau_recomp=4), "tau_fwd >= tau_recomp >= tau_bkwd"),
        (dict(tau_fwd=3, tau_bkwd=2, tau_recomp=1), "tau_fwd >= tau_recomp >= tau_bkwd"),
        (dict(curvature=0.0), "curvature must be finite and > 0"),
        (dict(curvature=math.nan), "curvature must be finite and > 0"),
        (dict(discrepancy=math.nan), "discrepancy and phi must be at most"),
        (dict(discrepancy=1e10), "discrepancy and phi must be at most"),
        (dict(tau_fwd=1, tau_recomp=0, phi=math.nan), "discrepancy and phi must be at most"),
        (dict(tau_fwd=1, gamma=1.0), "momentum and gamma must be"),
        (dict(tau_fwd=1, gamma=-0.1), "momentum and gamma must be"),
        (dict(tau_fwd=1, gamma=math.nan), "momentum and gamma must be"),
        (dict(tau_fwd=1, momentum=1.0), "momentum and gamma must be"),
        (dict(tau_fwd=1, phi=1.0), "give tau_recomp too"),
        (dict(tau_fwd=0, momentum=0.9), "plain delay tau_fwd >= 1 only"),
        (dict(tau_fwd=2, momentum=0.9, gamma=0.5), "plain delay tau_fwd >= 1 only"),
        (dict(tau_fwd=2, momentum=0.9, discrepancy=1.0), "plain delay tau_fwd >= 1 only"),
        (dict(tau_fwd=2, momentum=0.9, tau_recomp=1), "plain delay tau_fwd >= 1 only"),
    ],
)
def test_cases_outside_the_table_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Quadratic(**arguments)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: lemma1(-1), "a delay must be"),
        (lambda: lemma1(math.nan), "a delay must be"),
        (lambda: lemma1(1, -2.0), "curvature must be"),
        (lambda: lemma2(3, 4, 1.0), "Lemma 2 needs"),
        (lambda: lemma2(3, -1, 1.0), "Lemma 2 needs"),
        (lambda: lemma2(3, 0, -1.0), "Lemma 2 needs"),
        (lambda: lemma3(-1), "a delay must be"),
        (lambda: fastest_without_oscillation(-1), "a delay must be"),
        (lambda: fastest_without_oscillation(1, 0.0), "curvature must be"),
        (lambda: gamma_star(0), "gap must be"),
        (lambda: gamma(0.5, 0), "gap must be"),
        (lambda: gamma(1.0, 3), "decay constant D"),
        (lambda: gamma(0.0, 3), "decay constant D"),
        (lambda: spectral_radius_map(Quadratic(3, 2), [0.1], [1]), "tau_fwd >= tau_recomp"),
        (lambda: spectral_radius_map(Quadratic(3), [0.1], [2.5]), "tau_fwd must be a whole number"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
