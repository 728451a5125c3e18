"""The panels of lesson 04, without a browser: clicked, changed, cancelled, broken."""

from __future__ import annotations

import asyncio
from multiprocessing import active_children

import pytest
from ipywidgets.widgets import widget as registry

import pipemare_edu as pm
from pipemare_edu.figures import describe, placeholder
from pipemare_edu.figures.fig import Fig
from pipemare_edu.panels import (
    Annealing,
    Race,
    StageRates,
    annealing,
    race,
    stage_rates,
)
from pipemare_edu.panels.race import SLOWER
from pipemare_edu.studies.races import Track
from pipemare_edu.training import Job

QUICK = {"stages": 3, "steps": 12, "seeds": 2}
PANELS = {
    "race": lambda: Race(["gpipe", "pipemare-t1"], **QUICK),
    "rates": lambda: StageRates(stages=3, annealing=5, steps=12),
    "annealing": lambda: Annealing(5, seeds=1, steps=20),
}
PLAIN = {
    "race": lambda: race(["gpipe", "pipemare-t1"], **QUICK),
    "rates": lambda: stage_rates(stages=3, annealing=5, steps=12),
    "annealing": lambda: annealing(5, seeds=1, steps=20),
}


def clicked(panel) -> str:
    """Click Run and wait, as a cell does."""

    async def cell() -> str:
        panel.run.click()
        return await panel.wait()

    return asyncio.run(cell())


def cancelled(panel, far_enough) -> str:
    async def cell() -> str:
        panel.run.click()
        while not far_enough():
            await asyncio.sleep(0.01)
        panel.cancel.click()
        return await panel.wait()

    return asyncio.run(cell())


@pytest.mark.parametrize("name", PANELS)
def test_the_plain_call_gives_the_same_figures(name):
    panel = PANELS[name]()
    assert clicked(panel) == "done"
    plain = PLAIN[name]()
    assert set(plain.figures) == set(panel.figures)
    for key, figure in plain.figures.items():
        assert figure.to_json() == panel.figures[key].shown.to_json()
        assert describe(figure) == panel.figures[key].alt


@pytest.mark.parametrize("name", PANELS)
def test_the_text_form_is_a_call_that_works(name):
    lines = repr(PANELS[name]()).splitlines()
    assert eval(lines[0].partition(": controls")[0], vars(pm) | globals()).text == "\n".join(lines)
    plain = lines[1].removeprefix("Without widgets, ").partition(" gives")[0]
    assert eval(plain, vars(pm) | globals()).figures


@pytest.mark.parametrize("name", PANELS)
def test_an_error_in_the_trainer_shows_and_is_raised(name, monkeypatch):
    def broken(*args, **kwargs):
        raise ZeroDivisionError("broken on purpose")

    monkeypatch.setattr(Job, "chunks", broken)
    panel = PANELS[name]()
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        clicked(panel)
    assert "broken on purpose" in panel.status.value and not panel.run.disabled


@pytest.mark.parametrize("name", PANELS)
def test_disposal_and_a_new_one_leave_nothing_behind(name):
    Fig(placeholder("brings the bundle, which stays", 100)).close()
    before = set(registry._instances)
    for _ in range(2):
        panel = PANELS[name]()
        clicked(panel)
        panel.dispose()
    assert set(registry._instances) == before


# Race


def test_every_control_of_the_race_is_used():
    panel = Race()
    changes = {
        "methods": ("pipemare-t1",), "seeds": 1, "rate": 0.05, "stages": 4, "microbatches": 2,
        "steps": 9, "runs": "live", "engine": "2 processes",
    }  # fmt: skip
    assert set(changes) == set(panel.controls)
    panel.set(**changes)
    assert clicked(panel) == "done"
    (r,) = panel.result()
    run = pm.train(
        "digits", "pipemare-t1", stages=4, microbatches=2, steps=9, rate=0.05, eval_every=9
    )
    assert [v for _, v in r.losses] == pytest.approx(run.losses, rel=1e-3)
    before = panel.figures["race"].state.spec
    panel.views["show"].value = "score"
    assert panel.figures["race"].state.spec != before


def test_shipped_runs_are_shown_and_nothing_is_trained(monkeypatch):
    monkeypatch.setattr(Track, "run", lambda *_: pytest.fail("trained"))
    panel = Race()
    assert "The race appears here" in panel.figures["race"].alt  # not before Run
    assert clicked(panel) == "done"
    assert len(panel.result()) == 9 and all(r.shipped for r in panel.result())
    assert "0 runs trained here, 9 shipped" in panel.status.value
    assert panel.figures["race"].alt.startswith("Diverges: pipemare-naive in 3 of 3")


def test_live_runs_are_drawn_over_the_shipped_ones():
    panel = Race(["pipemare-naive"], seeds=2, runs="live")
    assert clicked(panel) == "done" and not panel.reached()
    assert [r.shipped for r in panel.result()] == [False, False]
    opacities = [
        t.opacity for t in panel.figures["race"].shown.data if "diverged" in (t.name or "")
    ]
    assert sorted(opacities) == [0.6, 0.6, 1.0, 1.0]
    assert "2 runs trained here, 0 shipped" in panel.status.value


def test_the_goal_of_the_race():
    panel = Race(["gpipe", "pipemare-naive"], seeds=2, steps=60, runs="live")
    assert not panel.reached()
    clicked(panel)
    assert panel.reached() and "✔" in panel._goal.value


def test_the_goal_of_nothing_to_fix():
    three = {"g": "gpipe", "plain": "pipemare-naive", "t1": pm.PipeMare(t1=400)}
    panel = Race(three, rate=0.02, steps=400, goal=SLOWER)
    assert not panel.reached()
    clicked(panel)
    assert panel.reached()
    other = Race(["pipemare-naive", "pipemare-t1"], goal=SLOWER)
    clicked(other)
    assert not other.reached()


def test_a_cancelled_race_keeps_what_ran():
    panel = Race(["gpipe"], seeds=3, stages=3, steps=100_000)
    word = cancelled(panel, lambda: panel.racers and panel.racers[-1].steps > 5)
    assert word == "cancelled" and "Cancelled: 1 run trained here" in panel.status.value
    assert [r.status for r in panel.result()] == ["cancelled"]


def test_a_race_on_two_processes_shows_both_runs_and_is_cancelled():
    panel = Race(["gpipe", "pipemare-t1"], stages=3, steps=100_000, engine="2 processes")

    def both_run() -> bool:
        return len(panel.racers) == 2 and all(r.steps > 5 for r in panel.racers)

    assert cancelled(panel, both_run) == "cancelled" and active_children() == []
    assert [r.status for r in panel.result()] == ["cancelled"] * 2
    assert "Cancelled: 2 runs trained here" in panel.status.value
    for make in (Race, race):
        with pytest.raises(ValueError, match="unknown engine 'gpu'. There are kernel, 2 processes"):
            make(engine="gpu")


def test_no_method_and_bad_names_are_refused():
    panel = Race()
    panel.controls["methods"].value = ()
    with pytest.raises(ValueError, match="no method is chosen"):
        clicked(panel)
    assert "no method is chosen" in panel.status.value
    with pytest.raises(ValueError, match="did you mean 'pipemare'"):
        Race(["pipmare"])
    panel = Race(["gpipe"], **QUICK)
    panel.controls["stages"].value = 20
    with pytest.raises(ValueError, match="12 layers cannot fill 20 stages"):
        clicked(panel)


# StageRates


CHANGES = {
    "stages": 5, "microbatches": 3, "annealing": 100, "base": "step", "rate": 0.1, "power": 0.5,
    "guard": False,
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_every_control_of_the_rates_redraws_at_once(name):
    start = {"microbatches": 2}  # so that the guard matters
    panel = StageRates(**start)
    assert set(panel.controls) == set(CHANGES)
    before = panel.figures["rates"].state.spec
    panel.controls[name].value = CHANGES[name]
    assert panel.figures["rates"].state.spec != before
    plain = stage_rates(**start | {name: CHANGES[name]}, train=False)
    for key, figure in plain.figures.items():
        assert figure.to_json() == panel.figures[key].shown.to_json()


def test_measured_rates_go_when_a_control_moves():
    panel = StageRates(stages=3, annealing=5, steps=12)
    clicked(panel)
    assert panel.result().steps == 12

    def marks():
        return [len(t.x) for t in panel.figures["rates"].shown.data if "measured" in t.name]

    assert marks() == [12, 12, 12]
    panel.controls["annealing"].value = 6
    assert marks() == [0, 0, 0]


def test_the_cliff_comes_back_when_a_constant_rate_does():
    panel = StageRates(base="constant", annealing=100)
    assert clicked(panel) == "diverged" and panel.result().diverged[0] >= 90
    assert "Diverged at step" in panel.status.value


def test_the_goal_of_the_rates():
    panel = StageRates()
    assert not panel.reached()
    panel.controls["microbatches"].value = 2
    assert not panel.reached()  # tau is 11.5
    panel.controls["microbatches"].value = 3
    assert panel.reached()
    panel.set(microbatches=1, power=0.5)
    assert not panel.reached()
    assert "begins with 0.209 times the base rate" in panel.status.value
    panel.set(annealing=0)
    assert "T1 is off" in panel.status.value


def test_cancelling_a_run_with_its_rates():
    panel = StageRates(base="constant", rate=0.01)
    word = cancelled(panel, lambda: panel.last and panel.last.steps > 5)
    assert word == "cancelled" and 5 < panel.result().steps < 400


def test_an_unknown_base_is_refused():
    with pytest.raises(ValueError, match="did you mean 'cosine'"):
        stage_rates(base="cosin", train=False)


# Annealing


def test_annealing_follows_k_and_trains_with_it():
    panel = Annealing(annealing=25)
    before = panel.figures["rates"].state.spec
    panel.set(annealing=30, seeds=2)
    assert panel.figures["rates"].state.spec != before
    assert clicked(panel) == "done"
    assert [r.method for r in panel.result()] == ["K = 30"] * 2
    assert "K = 30: 2 of 2 runs diverged" in panel.status.value
    assert "K = 30: 2 of 2" in panel.figures["ends"].alt and not panel.reached()


def test_the_goal_of_annealing():
    panel = Annealing(20, rate=0.3, steps=60)
    assert clicked(panel) == "done"
    assert all(r.status == "diverged" for r in panel.result()) and not panel.reached()
    panel.set(annealing=60)
    clicked(panel)
    assert {r.status for r in panel.result()} == {"done"}
    assert panel.reached()


def test_a_cancelled_run_is_no_mark():
    panel = Annealing(400)
    word = cancelled(panel, lambda: panel._latest and panel._latest[-1].steps > 5)
    assert word == "cancelled" and panel.here[400] == []
    assert "Cancelled. K = 400: no run has ended yet" in panel.status.value
