"""EngineSwitch and TwoWorkers, without a browser: changed, run, cancelled, broken."""

from __future__ import annotations

import asyncio
import json

import pytest
from ipywidgets.widgets import widget as registry
from torch import nn

import pipemare_edu as pm
from pipemare_edu.figures import headline
from pipemare_edu.models import away
from pipemare_edu.panels import EngineSwitch, TwoWorkers, engine_switch, two_workers
from pipemare_edu.panels.alike import Alike, Configuration, Ran, tell
from pipemare_edu.panels.pair import Pair
from pipemare_edu.training import Job

SMALL = {"method": "gpipe", "stages": 2, "microbatches": 1, "steps": 4}
QUICK = {"schedule": "1f1b", "microbatches": 2, "steps": 4}
PANELS = [(EngineSwitch, engine_switch, SMALL), (TwoWorkers, two_workers, QUICK)]
BOTH = pytest.mark.parametrize(("make", "plain", "given"), PANELS, ids=["engines", "workers"])


@pytest.fixture(autouse=True)
def naps(monkeypatch):
    """Layers that sleep a tenth as long."""
    monkeypatch.setattr(away, "UNIT", 0.0002)


def ran(panel) -> str:
    """Click Run and wait, as a cell does."""

    async def cell() -> str:
        panel.run.click()
        return await panel.wait()

    return asyncio.run(cell())


def specs(figures) -> dict[str, str]:
    return {name: getattr(f, "shown", f).to_json() for name, f in figures.items()}


# Both


@BOTH
def test_cancel(make, plain, given):
    panel = make(**given | {"steps": 100_000})

    async def cell():
        panel.run.click()
        while panel.progress.value == 0.0 and panel.busy:
            await asyncio.sleep(0.01)
        panel.cancel.click()
        return await panel.wait()

    assert asyncio.run(cell()) == "cancelled"
    assert "cancelled, step" in panel.status.value
    assert panel.result() is None or not panel.result().done


def broken(*args, **kwargs):
    raise ZeroDivisionError("broken on purpose")


@BOTH
def test_an_error_in_the_trainer_shows_and_is_raised(make, plain, given, monkeypatch):
    panel = make(**given)
    where = "alike.prepare" if make is EngineSwitch else "pair.Trainer"
    monkeypatch.setattr(f"pipemare_edu.panels.{where}", broken)
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        ran(panel)
    assert "broken on purpose" in panel.status.value


@BOTH
def test_disposal_leaves_no_widget(make, plain, given):
    make(**given).dispose()  # the bundle stays
    widgets = set(registry._instances)
    panel = make(**given)
    ran(panel)
    panel.dispose()
    assert set(registry._instances) == widgets


@BOTH
def test_the_text_form_says_the_plain_call(make, plain, given):
    text = repr(make(**given))
    assert text == repr(make(**given))
    assert f"{plain.__name__}({next(iter(given))}=" in text


# EngineSwitch


def test_the_plain_call_shows_what_the_panel_shows_and_both_engines_the_same():
    panel = EngineSwitch(**SMALL)
    assert ran(panel) == "done" and panel.result().equal
    plain = engine_switch(**SMALL)
    assert specs(panel.figures) == specs(plain.figures)
    assert "the same" in headline(plain["2 processes"])
    one, other = (json.loads(specs(plain.figures)[name]) for name in ("kernel", "2 processes"))
    assert one["layout"].pop("title") != other["layout"].pop("title") and one == other
    assert "equal to the last bit" in panel.status.value
    run = pm.train("digits", method="gpipe", stages=2, microbatches=1, steps=4)
    assert panel.result().one.run.losses == run.losses


@pytest.mark.parametrize("method", ["pipedream", "pipemare", "1f1b", "pipemare-naive"])
def test_no_method_tells_the_engines_apart(method):
    assert engine_switch(method, stages=5, microbatches=3, steps=7).value.equal


def test_every_control_is_used_and_the_goal_is_reached():
    panel = EngineSwitch(**SMALL)
    changes = {"method": "pipemare-t1t2", "stages": 3, "microbatches": 2, "steps": 5, "seed": 4}
    ran(panel)
    panel.set(**changes, engine="2 processes")
    assert set(panel.controls) == {*changes, "engine"}
    ran(panel)
    assert list(panel.compared)[-1] == Configuration(**changes)
    assert not panel.reached()
    panel.set(seed=5)
    ran(panel)
    assert panel.reached() and "✔" in panel._goal.value
    panel.views["time"].value = "measured"
    words = panel.figures["2 processes"].alt
    assert "times as measured" in words and panel.error is None
    panel.set(engine="kernel")
    assert ran(panel) == "done" and panel.result() is None
    assert "appears here" in panel.figures["2 processes"].alt


def test_what_differs_is_counted_and_said():
    one = engine_switch(**SMALL, engine="kernel").value
    assert one is None
    kernel = engine_switch(**SMALL).value.one
    other = engine_switch(**SMALL | {"seed": 1}).value.one
    found = Alike(kernel, other)
    assert not found.equal and found.losses == 4 and found.tensors > 0 and found.gap > 0
    assert "Losses differ by measured" in tell(found)
    late = engine_switch(**SMALL | {"method": "1f1b", "microbatches": 2}).value.one
    assert Alike(kernel, late).reordered == 2
    assert "2 stages ran other operations" in tell(Alike(kernel, late))
    weights = (kernel.tensors[0] + 1e-7, *kernel.tensors[1:])
    assert Alike(kernel, Ran("other", kernel.run, weights)).tensors == 1


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"method": "gpip"}, "did you mean 'gpipe'"),
        ({"engine": "two"}, "unknown engine"),
        ({"stages": 0}, "stages is 0"),
        ({"steps": 0}, "steps is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"time": "now"}, "time is 'now'|unknown chart time 'now'"),
    ],
)
@pytest.mark.parametrize("make", [EngineSwitch, engine_switch], ids=["panel", "plain call"])
def test_what_cannot_be_is_refused_at_once(make, given, says, monkeypatch):
    monkeypatch.setattr(Job, "chunks", broken)
    with pytest.raises(ValueError, match=says):
        make(**SMALL | given)


def test_more_stages_than_layers_are_the_plain_text_of_the_error():
    panel = EngineSwitch(**SMALL)
    panel.controls["stages"].max = 20
    panel.set(stages=20)
    with pytest.raises(ValueError, match="12 layers cannot fill 20 stages"):
        ran(panel)
    assert "12 layers cannot fill" in panel.status.value


# TwoWorkers


def test_before_a_run_the_plain_call_shows_what_the_panel_shows():
    panel = TwoWorkers(**QUICK)
    assert specs(panel.figures) == specs(two_workers(**QUICK | {"steps": 0}).figures)


def test_a_run_measures_both_and_shows_them():
    panel = TwoWorkers(**QUICK)
    assert ran(panel) == "done"
    both = panel.result()
    assert both.alone.losses == both.workers.losses and both.speedup > 0
    assert "measured" in panel.figures["speedup"].alt and "measured" in panel.figures["time"].alt
    assert "2 stages in 2 workers" in panel.figures["chart"].alt
    assert f"measured {both.speedup:.2f} times" in panel.status.value
    plain = two_workers(**QUICK)
    assert [list(t.y) for t in plain["speedup"].data][:3] == [
        list(t.y) for t in panel.figures["speedup"].shown.data
    ][:3]
    panel.controls["microbatches"].value = 3  # what was measured keeps its own settings
    assert "measured" not in panel.figures["speedup"].alt


CHANGES = [
    ("schedule", "lockstep"),
    ("microbatches", 5),
    ("first", 5),
    ("last", 4.0),
    ("message", 64),
    ("layers", "compute"),
]


@pytest.mark.parametrize(("name", "value"), CHANGES)
def test_every_control_is_followed_and_used(name, value):
    panel = TwoWorkers(**QUICK)
    assert set(panel.controls) == {k for k, _ in CHANGES}
    panel.controls[name].value = value
    plain = two_workers(**QUICK | {name: value, "steps": 0})
    assert specs(panel.figures) == specs(plain.figures)
    assert panel.now == Pair(**{**{k: v for k, v in QUICK.items() if k != "steps"}, name: value})
    assert ran(panel) == "done" and panel.result().pair == panel.now


def test_the_goal_needs_both_a_cut_and_a_schedule():
    panel = TwoWorkers(**QUICK)
    for changes, reached in (
        ({"last": 5.0}, False),
        ({"first": 5}, False),
        ({"schedule": "async-1f1b"}, True),
    ):
        panel.set(**changes)
        assert not panel.reached()  # not before it was measured
        ran(panel)
        assert panel.reached() is reached


@pytest.mark.parametrize("pair", [Pair(), Pair(first=5, last=5.0), Pair("1f1b", 7, 2)])
def test_a_synchronous_gain_is_what_the_formula_says(pair):
    n, (one, two) = pair.microbatches, pair.forward
    down = one + two + (n - 1) * max(one, two)
    assert pair.speedup == pytest.approx(n * (one + two) / down)
    assert pair.speedups[n - 1] == pair.speedup <= pair.limit


@pytest.mark.parametrize("schedule", ["async-1f1b", "lockstep"])
@pytest.mark.parametrize("n", [1, 2, 12])
def test_an_asynchronous_gain_is_the_limit(schedule, n):
    assert Pair(schedule, n, 2).speedup == pytest.approx(Pair(schedule, n, 2).limit)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"schedule": "gpip"}, "did you mean 'gpipe'"),
        ({"layers": "nap"}, "unknown layers"),
        ({"microbatches": 0}, "microbatches is 0"),
        ({"microbatches": 13}, "microbatches is 13"),
        ({"first": 6}, "first is 6"),
        ({"last": 0}, "last is 0"),
        ({"message": 0}, "message is 0"),
        ({"steps": 3}, "steps is 3"),
    ],
)
@pytest.mark.parametrize("make", [TwoWorkers, two_workers], ids=["panel", "plain call"])
def test_settings_that_cannot_be_are_refused_at_once(make, given, says):
    with pytest.raises(ValueError, match=says):
        make(**QUICK | given)


def test_layers_that_sleep_are_linear_layers():
    [layer] = away.away([1.0], [2.0])
    assert isinstance(layer.linear, nn.Linear) and layer.back == 2 * layer.there
    assert sum(p.numel() for p in layer.parameters()) == 33 * 32
