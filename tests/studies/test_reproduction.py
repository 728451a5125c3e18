"""The shipped reproduction: taken from a folder, found again, and continued live."""

from __future__ import annotations

import math

import pytest

from pipemare_edu.figures.race import Racer
from pipemare_edu.lessons.cache import Cache
from pipemare_edu.reproduce.presets import METHODS, PRESETS, Part
from pipemare_edu.reproduce.study import Study, case
from pipemare_edu.reproduce.summary import summarize
from pipemare_edu.studies import reproduction, target
from pipemare_edu.studies.reproduction import PARTS, after, cut, live, racers, records, section
from pipemare_edu.studies.stage_times import StageTimes, measure


@pytest.mark.parametrize("task", PARTS)
def test_every_method_of_every_task_is_shipped(task):
    found = records(task)
    assert {r["method"] for r in found} == set(METHODS)
    assert {r["seed"] for r in found} <= set(PRESETS["full"].seeds)
    assert set(reproduction.times(task)) == set(METHODS)


def test_what_is_shipped_says_the_same_as_the_folder(tmp_path, monkeypatch):
    preset = PRESETS["full"]
    quick = [Part("regression")]
    monkeypatch.setattr(reproduction, "PRESET", type(preset)("full", tuple(quick), (10, 11)))
    monkeypatch.setattr(reproduction, "PARTS", {"regression": quick[0]})
    cache = Cache("reproduction", tmp_path)
    monkeypatch.setattr(reproduction, "shipped", lambda: cache)
    on = case(quick[0], 8)
    monkeypatch.setattr(reproduction, "case_of", lambda task: on)
    study = Study(reproduction.PRESET, tmp_path, 8)
    monkeypatch.setattr(reproduction, "Study", lambda *_: study)
    for _ in study.run(1):
        pass
    assert list(reproduction.take(str(tmp_path))) == ["regression: 12 runs"]
    full, thin = (summarize(on, r) for r in (study.records(study.cases[0]), records("regression")))
    for mine, its in zip(thin, full, strict=True):
        for name, value in vars(its).items():
            seen = getattr(mine, name)
            assert seen == (
                pytest.approx(value, rel=1e-3, abs=0.01) if isinstance(value, float) else value
            )


def test_a_live_slice_is_the_beginning_of_the_shipped_run():
    *before, last = live("digits", "gpipe", 10, 32)
    shipped = next(r for r in racers("digits", ["gpipe"]) if r.seed == 10)
    assert last.status == "done" and last.steps == 32 and not last.shipped
    assert last.scores[-1][1] == pytest.approx(shipped.scores[0][1], abs=10)
    assert all(r.status == "running" for r in before)


def test_a_live_slice_can_be_stopped():
    running = live("digits", "gpipe", 10, 700)
    next(running)
    with pytest.raises(StopIteration):
        running.send(True)


def test_names_that_were_not_run_are_refused():
    with pytest.raises(ValueError, match="did you mean 'words'"):
        section("word")
    with pytest.raises(ValueError, match="did you mean 'pipemare'"):
        next(live("digits", "pipmare", 0, 1))


def test_scores_after_a_step():
    runs = [
        Racer("a", 0, 100, "done", scores=((10, 1.0), (20, 2.0))),
        Racer("a", 1, 15, "diverged", scores=((10, 1.0),), diverged=15),
        Racer("b", 0, 9, "done"),
    ]
    assert after(runs, "a", 12) == {0: 1.0, 1: 1.0}
    assert after(runs, "a", 20) == {0: 2.0, 1: None}
    assert after(runs, "b", 20) == {}
    assert cut(runs[0], 15, True) == Racer("a", 0, 15, "done", scores=((10, 1.0),))
    assert cut(runs[1], 15, False) is runs[1]
    assert cut(runs[1], 12, True).diverged is None


# What a step costs


def test_prices_are_the_formula():
    for bubble in (1.0, 0.5, 0.0):
        at = target.prices("shapes", "alike", bubble)  # P = 20, N = 2
        ratio = at.synchronous / at.asynchronous["pipemare"]
        assert ratio == pytest.approx(1 + bubble * 19 / 2)
        assert at.of("pipemare", 30, 10) == pytest.approx(
            10 * at.synchronous + 20 * at.asynchronous["pipemare"]
        )
        assert at.of("gpipe", 30, 0) == pytest.approx(30 * at.synchronous)


def test_unequal_stages_gain_less_and_never_more():
    for task in PARTS:
        alike, seen = (target.prices(task, stages) for stages in target.STAGES)
        ratios = [at.synchronous / at.asynchronous["pipemare-naive"] for at in (alike, seen)]
        assert 1 < ratios[1] < 1.2 * ratios[0]  # measured separately, so not to the digit


def test_factors_are_those_of_the_report():
    for row in section("shapes").rows:
        found = target.found("shapes", 0.95)[row.method]
        assert (found is None) == (row.time is None)
        assert found is None or math.isclose(found.time, row.time)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"share": 0.0}, "share is 0.0"),
        ({"stages": "alik"}, "did you mean 'alike'"),
        ({"bubble": 1.5}, "bubble is 1.5"),
        ({"task": "shape"}, "did you mean 'shapes'"),
    ],
)
def test_other_assumptions_are_refused(given, says):
    with pytest.raises(ValueError, match=says):
        target.found(**{"task": "shapes", "share": 0.95} | given)


def test_times_of_stages_are_measured_and_timed():
    on = case(Part("regression"))
    seen = measure(on, "gpipe", rounds=1)
    assert all(0 < s < 1 for row in seen.rows for s in row)
    again = StageTimes(*map(tuple, seen.as_json()))
    work = again.work(2)
    pipe = again.interval(on.methods["pipemare-naive"], 2)
    assert max(work) <= pipe * 1.0001 and pipe <= again.interval(on.methods["gpipe"], 2)
