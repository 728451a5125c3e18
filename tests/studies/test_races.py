"""Races: live and shipped runs, as values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from multiprocessing import active_children

import pytest

import pipemare_edu as pm
from pipemare_edu.lessons.cache import Cache
from pipemare_edu.studies import races
from pipemare_edu.studies.races import KS, SAFE, SHORT, Track, defaults, race, shipped, track

QUICK = track(stages=3, steps=24)


def test_a_track_takes_the_tasks_own_setting():
    assert track() == Track("digits", "mlp", 0.2, 12, 1, 1600)
    assert track(network="deep", rate=None, steps=10) == Track("digits", "deep", 0.15, 16, 1, 10)
    with pytest.raises(ValueError, match="did you mean 'digits'"):
        track("digit")


def test_a_lineup_takes_names_and_methods():
    line = track(steps=400).lineup({"a": "pipemare-t1", "b": pm.PipeMare(t1=7), "c": "gpipe"})
    assert [m.t1 for m in (line["a"], line["b"])] == [100, 7]
    assert list(track().lineup(["gpipe", "pipedream"])) == ["gpipe", "pipedream"]
    for wrong, says in (([], "no methods"), (["pipmare"], "did you mean 'pipemare'")):
        with pytest.raises(ValueError, match=says):
            track().lineup(wrong)
    with pytest.raises(ValueError, match="'b' is 3"):
        track().lineup({"b": 3})


def test_a_live_race_gives_what_train_gives():
    methods = QUICK.lineup(["gpipe", "pipemare-t1t2"])
    *_, ended = race(QUICK, methods, range(2))
    assert [(r.method, r.seed) for r in ended] == [
        (name, seed) for seed in range(2) for name in methods
    ]
    run = pm.train("digits", "gpipe", stages=3, steps=24, seed=1)
    last = ended[2]
    assert last.final == pytest.approx(run.metrics["accuracy"][-1][1], rel=1e-3)
    assert [v for _, v in last.losses] == pytest.approx(run.losses, rel=1e-3)
    assert last.status == "done" and last.steps == 24 and not last.shipped


def test_a_race_grows_and_stops():
    long, seen = replace(QUICK, steps=10_000), []
    for racers in race(long, long.lineup(["gpipe"]), range(3), stop=lambda: len(seen) > 2):
        seen.append(racers[-1].steps)
    assert racers[-1].status == "cancelled" and len(racers) == 1
    assert 0 < seen[-1] < 10_000 and seen == sorted(seen)


def test_two_runs_at_a_time_give_the_same_racers():
    methods = QUICK.lineup(["gpipe", "pipemare-t1"])
    *_, one = race(QUICK, methods, range(2))
    *_, two = race(QUICK, methods, range(2), jobs=2)
    assert two == one and active_children() == []


def test_a_race_in_processes_grows_and_stops_and_leaves_nothing():
    long, seen = replace(QUICK, steps=100_000), []
    both = long.lineup(["gpipe", "pipemare-t1"])
    for racers in race(long, both, range(2), jobs=2, stop=lambda: bool(seen)):
        if len(racers) == 2 and all(r.losses for r in racers):
            seen.append(racers)
    assert [r.status for r in seen[0]] == ["running"] * 2
    assert [r.status for r in racers] == ["cancelled"] * 2 and active_children() == []


@dataclass(frozen=True)
class Broken(pm.PipeMare):
    def rate(self, tau, step):
        raise LookupError("no rate")


def test_an_error_in_a_process_ends_the_race_and_leaves_nothing():
    with pytest.raises(pm.StageError, match="no rate"):
        list(race(QUICK, {"a": pm.GPipe(), "b": Broken()}, range(2), jobs=2))
    assert active_children() == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_cannot_run_is_refused_before_anything_runs(jobs, monkeypatch):
    monkeypatch.setattr(Track, "run", lambda *_: pytest.fail("it started"))
    monkeypatch.setattr(races, "in_processes", lambda *_: pytest.fail("it started"))
    with pytest.raises(ValueError, match="12 layers cannot fill 20 stages"):
        list(race(replace(QUICK, stages=20), QUICK.lineup(["gpipe"]), [0], jobs=jobs))


def test_a_diverged_run_counts_0_and_ends_in_a_finite_loss():
    naive = SHORT.lineup(["pipemare-naive"])
    *_, (r,) = race(SHORT, naive, [0], live=True)
    assert r.status == "diverged" and r.final == 0.0 and r.diverged == r.steps
    assert all(0 <= value < 1e6 for _, value in r.losses)


def test_everything_that_is_shown_by_default_is_shipped():
    for on, methods, seeds in defaults():
        *_, racers = race(on, methods, seeds)
        assert all(r.shipped and r.ended for r in racers)
        assert [r.method for r in racers[: len(methods)]] == list(methods)


def test_a_live_run_agrees_with_its_shipped_one():
    """Runs far from the edge of stability: those near it are chaotic."""
    for on, name in ((SAFE, "gpipe"), (SHORT, "K = 25")):
        method = SHORT.lineup({"K = 25": pm.PipeMare(t1=25), "gpipe": "gpipe"})[name]
        *_, (live,) = race(on, {name: method}, [0], live=True)
        known = shipped(on, name, method, 0)
        assert known is not None and live.status == known.status
        assert live.final == pytest.approx(known.final, abs=2.0)


def test_what_was_said_about_k_holds_in_the_shipped_runs():
    """The ends of the scale; in between nothing is certain."""
    dead = {k: [shipped(SHORT, "", pm.PipeMare(t1=k), s).status for s in range(3)] for k in KS}
    assert set(dead[25]) == set(dead[50]) == {"diverged"} and set(dead[400]) == {"done"}


def test_another_question_is_never_answered_from_what_is_shipped():
    method = pm.PipeMare(t1=400)
    assert shipped(track(), "", method, 0) is not None
    assert shipped(track(), "", method, 7) is None
    assert shipped(track(rate=0.21), "", method, 0) is None

    @dataclass(frozen=True)
    class PipeMare(pm.PipeMare):
        """Prints like ours, and is not."""

    mine = PipeMare(t1=400)
    assert shipped(track(), "", mine, 0) is None


def test_the_command_trains_what_is_missing(monkeypatch, tmp_path, capsys):
    store = Cache("races", tmp_path)
    monkeypatch.setattr(races, "results", lambda: store)
    monkeypatch.setattr(
        races, "defaults", lambda: iter([(QUICK, QUICK.lineup(["gpipe"]), range(2))])
    )
    assert races.main(["--write"]) == 0
    first = capsys.readouterr().out
    assert "gpipe: seed 0 accuracy" in first and store.path.exists()
    monkeypatch.setattr(Track, "run", lambda *a: pytest.fail("trained again"))
    assert races.main([]) == 0 and capsys.readouterr().out == first
