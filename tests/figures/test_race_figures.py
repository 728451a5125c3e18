"""The figures of lesson 04: what they draw and what they say."""

from __future__ import annotations

import pytest

from pipemare_edu.figures import Racer, annealing, describe, headline, race, rate_curves
from pipemare_edu.figures.rates import shown_stages


def done(method, seed, score=90.0, **more):
    points = ((1, 2.0), (2, 1.0), (3, 0.5))
    return Racer(method, seed, 3, "done", points, ((2, 50.0), (3, score)), **more)


def dead(method, seed, **more):
    return Racer(method, seed, 2, "diverged", ((1, 2.0), (2, 9e3)), (), 2, **more)


RACERS = [done("a", 0), dead("b", 0), done("a", 1, 80.0), dead("b", 1, shipped=True)]


def named(figure, part):
    return [t for t in figure.data if part in (t.name or "")]


def test_every_run_has_a_curve_and_an_end():
    figure = race(RACERS)
    assert {t.name for t in named(figure, "seed")} >= {"a, seed 0", "b, seed 1, shipped"}
    crosses = named(figure, "diverged")
    assert [(t.x, t.y) for t in crosses] == [((2,), (9e3,))] * 2
    ends = [(t.opacity, tuple(t.y)) for t in figure.data if t.xaxis == "x2" and len(t.y)]
    assert ends == [(1.0, (90.0, 80.0)), (0.6, (0.0,)), (1.0, (0.0,))]
    assert sum(bool(t.showlegend is not False) for t in figure.data) == 2  # one entry a method
    assert figure.layout.yaxis.type == "log" and figure.layout.xaxis2.ticktext == ("a", "b")


def test_scores_instead_of_losses():
    figure = race(RACERS, show="score")
    assert named(figure, "a, seed 0")[0].y == (50.0, 90.0)
    assert named(figure, "diverged")[0].y == (0.0,)
    with pytest.raises(ValueError, match="show is 'both'"):
        race(RACERS, show="both")


def test_what_a_race_says():
    text = describe(race(RACERS))
    assert text.startswith("Diverges: b in 2 of 2; never: a.")
    assert "a: seed 0 accuracy 90; seed 1 accuracy 80." in text
    assert "b: seed 0 diverged at step 2; seed 1 diverged at step 2 (shipped)." in text
    assert describe(race([done("a", 0), done("c", 0)])).startswith("No run diverges: a and c.")
    running = Racer("a", 0, 1, "running", ((1, 2.0),))
    assert "The race is on. a: seed 0 running after 1 steps." in describe(race([running]))
    assert "The race appears here" in describe(race([]))


def test_final_scores():
    assert done("a", 0).final == 90 and dead("a", 0).final == 0
    assert Racer("a", 0, 0, "running").final is None
    assert [r.ended for r in (done("a", 0), dead("a", 0), Racer("a", 0, 1, "cancelled"))] == [
        True, True, False,
    ]  # fmt: skip


def test_ends_over_k():
    figure = annealing(
        {50: [dead("", 0, shipped=True), dead("", 1)], 300: [done("", 0)]}, 400, chosen=50, guess=99
    )
    drawn = {t.name: (t.x, t.y) for t in figure.data if len(t.x)}
    assert set(drawn) == {"to the end, here", "diverged, shipped", "diverged, here"}
    assert drawn["diverged, here"] == ((50.0,), (0.0,))
    assert {a.text for a in figure.layout.annotations} == {"K now", "your guess"}
    text = describe(figure)
    assert text.startswith("At K = 50 every run diverges and at K = 300 none does.")
    assert "K = 300: 0 of 1 runs diverged, accuracy 90." in text
    assert "No run yet" in describe(annealing({}, 400))


def curves(**more):
    given = {"steps": [0, 1, 9], "base": [0.2, 0.2, 0.0], "annealing": 5} | more
    rates = more.get("rates", {0: [0.1, 0.12, 0.0], 3: [0.2, 0.2, 0.0]})
    return rate_curves(**given | {"rates": rates, "taus": {0: 2.0, 3: 1.0}})


def test_rates_and_what_was_measured():
    figure = curves(seen={0: [0.1, 0.12, 0.14], 3: []})
    assert named(figure, "base rate")[0].y == (0.2, 0.2, None)  # no place on a log axis
    assert named(figure, "stage 1, measured")[0].y == (0.1, 0.12, 0.14)
    text = describe(figure)
    assert text.startswith("Stage 1 starts at 1/2 of the base rate; T1 ends at step 5.")
    assert "stage 1 (delay 2) 0.1, 0.12, 0" in text


def test_titles_of_rates():
    level = {0: [0.2, 0.2, 0.0]}
    assert headline(curves(annealing=0)) == "Every stage has the base rate"
    assert headline(curves(rates=level)) == "Every stage has the base rate"
    raised = curves(rates={0: [0.1, 0.1, 0.0], 3: [1.6, 1.0, 0.0]})
    assert headline(raised) == "Without the guard the last stage starts at 8 times the base rate"
    warm = curves(base=[0.0, 0.1, 0.2], rates={0: [0.0, 0.025, 0.2]})
    assert headline(warm).startswith("Stage 1 starts at 1/4 of")


@pytest.mark.parametrize("stages, shown", [(1, [0]), (4, [0, 1, 2, 3]), (12, [0, 3, 6, 8, 11])])
def test_stages_that_are_shown(stages, shown):
    assert shown_stages(stages) == shown
