"""VersionLadder, without a browser: clicked, changed, chosen on, cancelled, broken."""

from __future__ import annotations

import asyncio
import threading

import pytest
from ipywidgets.widgets import widget as registry

from pipemare_edu.figures import describe, headline, placeholder
from pipemare_edu.figures.ages import by_stage
from pipemare_edu.figures.fig import Fig
from pipemare_edu.panels import VersionLadder, version_ladder
from pipemare_edu.panels.ladder import on_paper, shown_steps
from pipemare_edu.panels.steps import KEYS, moved
from pipemare_edu.training import Job

LOCKSTEP = ("lockstep", 4, 1, "newest")


def run(panel: VersionLadder) -> str:
    """Click Run and wait, as a cell does."""

    async def cell() -> str:
        panel.run.click()
        return await panel.wait()

    return asyncio.run(cell())


def click(panel: VersionLadder, id: str) -> None:
    """What a browser sends for a click on a bar."""
    panel.figures["ladder"]._handle_custom_msg({"click": id}, [])


def press(panel: VersionLadder, *keys: str) -> None:
    for key in keys:
        panel.figures["ladder"]._handle_custom_msg({"key": key}, [])


def title(panel: VersionLadder) -> str:
    return headline(panel.figures["ladder"].shown)


def axis(panel: VersionLadder) -> str:
    return panel.figures["ladder"].shown.layout.xaxis.title.text


def test_run_stamps_what_paper_counts():
    panel = VersionLadder()
    before = sorted(panel.events)
    assert "counted from the lists" in axis(panel)
    assert run(panel) == "done"
    assert "stamped by a real run" in axis(panel) and "Done: 12 steps" in panel.status.value
    assert [tuple(e) for e in sorted(panel.events)] == [tuple(e) for e in before]
    assert panel.result().status == "done"


@pytest.mark.parametrize("chosen", [None, (0, "F8")])
@pytest.mark.parametrize("backward", ["newest", "stashed"])
def test_the_plain_call_gives_the_same_figure(backward, chosen):
    given = ("async-1f1b", 3, 2, backward, chosen)
    panel, plain = VersionLadder(*given), version_ladder(*given)
    run(panel)
    assert plain["ladder"].to_json() == panel.figures["ladder"].shown.to_json()
    assert describe(plain["ladder"]) == panel.figures["ladder"].alt == repr(plain)
    assert plain.value.losses == panel.result().losses


def test_every_control_is_followed_at_once_and_used_by_run():
    panel = VersionLadder()
    changes = {"schedule": "async-1f1b", "stages": 3, "microbatches": 2, "backward": "stashed"}
    assert set(changes) == set(panel.controls)
    seen = {panel.figures["ladder"].alt}
    for name, value in changes.items():
        panel.controls[name].value = value
        seen.add(panel.figures["ladder"].alt)
    assert len(seen) == 5
    assert panel.events == on_paper(*changes.values())
    assert run(panel) == "done"
    config = panel.result().config
    assert (len(config["stages"]), config["microbatches"]) == (3, 2)
    assert config["method"].startswith("PipeDream(depth='async-1f1b', ")
    assert config["steps"] == shown_steps("async-1f1b", 3, 2)
    panel.controls["stages"].value = 4
    assert panel.result() is None and "counted from the lists" in axis(panel)


@pytest.mark.parametrize("schedule", ["lockstep", "async-1f1b", "sequential", "gpipe", "1f1b"])
def test_every_schedule_runs(schedule):
    panel = VersionLadder(schedule, 3, 2)
    before = sorted(panel.events)
    assert run(panel) == "done"
    assert [tuple(e) for e in sorted(panel.events)] == [tuple(e) for e in before]


def test_a_click_lights_and_counts_and_says_so():
    panel = VersionLadder()
    assert panel.tau is None
    click(panel, "0 F8")
    assert panel.chosen == (0, "F8") and panel.tau == 7
    assert "so τ = 7" in title(panel) and "so τ = 7" in panel.status.value
    assert "so τ = 7" in panel.figures["ladder"].alt
    click(panel, "3 B8")
    assert panel.tau == 1 and "Stage 4, backward of microbatch 8" in panel.status.value
    click(panel, "2 U3")
    assert panel.tau is None and "Stage 3, update 3: makes version 4" in panel.status.value


def test_the_keys_walk_over_the_operations():
    panel = VersionLadder()
    assert panel.figures["ladder"].takes == KEYS
    press(panel, "ArrowRight")
    assert panel.chosen == (0, "F0")
    press(panel, "ArrowRight", "ArrowRight", "ArrowLeft")
    assert panel.chosen == (0, "F1")
    press(panel, "ArrowDown")
    assert panel.chosen == (1, "F0") and "Stage 2, forward of microbatch 0" in panel.status.value
    press(panel, "ArrowUp", "End")
    assert panel.chosen == (0, "U11")
    press(panel, "ArrowRight", "Home", "ArrowLeft")
    assert panel.chosen == (0, "F0")
    press(panel, "Escape")
    assert panel.chosen is None and "Nothing is chosen" in panel.status.value
    press(panel, "Tab")  # not one of its keys
    assert panel.chosen is None


def test_keys_reach_every_operation_and_stop_at_the_edges():
    rows = by_stage(on_paper("lockstep", 3, 2, "newest"))
    for stage, row in enumerate(rows):
        place = (stage, f"{row[0].kind}{row[0].index}")
        for e in row:
            assert place == (stage, f"{e.kind}{e.index}")
            place = moved(rows, place, "ArrowRight")
        assert place == (stage, f"{row[-1].kind}{row[-1].index}")
    assert moved(rows, (0, "F3"), "ArrowUp") == (0, "F3")
    assert moved(rows, (2, "F3"), "ArrowDown") == (2, "F3")
    assert moved(rows, (1, "U1"), "ArrowDown")[0] == 2


def test_the_goal_is_a_forward_with_five():
    panel = VersionLadder()
    assert not panel.reached()
    panel.choose("B8", stage=1)
    assert panel.tau == 5 and not panel.reached()
    assert "τ = 5" in panel.choose("F8", stage=1)
    assert panel.reached() and "✔" in panel._goal.value
    assert panel.choose(None) == "Nothing is chosen." and not panel.reached()


def test_a_choice_outlives_a_run_and_not_a_chart_without_it():
    panel = VersionLadder(chosen=(3, "F8"))
    run(panel)
    assert panel.chosen == (3, "F8") and "so τ = 1" in title(panel)
    panel.controls["stages"].value = 3
    assert panel.chosen is None


def test_cancel_ends_the_run(monkeypatch):
    panel = VersionLadder("lockstep", 8, 4)
    monkeypatch.setattr("pipemare_edu.panels.ladder.shown_steps", lambda *_: 100_000)

    async def cell():
        panel.run.click()
        while not (panel.last and panel.last.steps > 3):
            await asyncio.sleep(0.01)
        panel.cancel.click()
        return await panel.wait()

    assert asyncio.run(cell()) == "cancelled"
    assert 3 < panel.result().steps < 100_000 and "Cancelled" in panel.status.value
    assert "stamped by a real run" in axis(panel)


def broken(*args, **kwargs):
    raise ZeroDivisionError("broken on purpose")


def test_an_error_in_the_trainer_shows_and_is_raised(monkeypatch):
    monkeypatch.setattr(Job, "chunks", broken)
    panel = VersionLadder()
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        run(panel)
    assert "broken on purpose" in panel.status.value and "counted" in axis(panel)


def test_errors_after_a_click_a_key_or_a_change_show_and_are_raised(monkeypatch):
    panel = VersionLadder()
    monkeypatch.setattr("pipemare_edu.panels.ladder.ladder", broken)
    acts = (
        lambda: click(panel, "0 F8"),
        lambda: press(panel, "Home"),
        lambda: setattr(panel.controls["stages"], "value", 3),
    )
    for act in acts:
        panel.error = None
        act()
        assert "broken on purpose" in panel.status.value
        with pytest.raises(ZeroDivisionError):
            panel.result()


def test_what_is_not_there_is_refused():
    panel = VersionLadder()
    with pytest.raises(ValueError, match="has no F99"):
        panel.choose("F99")
    assert panel.chosen is None
    with pytest.raises(ValueError, match="has no F99"):
        VersionLadder(chosen=(0, "F99"))
    with pytest.raises(ValueError, match="unknown schedule 'lock'"):
        VersionLadder("lock")
    with pytest.raises(ValueError, match="give one of newest, stashed"):
        version_ladder(backward="oldest")


def test_keys_from_another_thread_are_handled_on_the_loop():
    """JupyterLab's messages come on a thread of their own."""
    panel = VersionLadder()

    async def cell():
        panel.run.click()
        await panel.wait()
        threads = []
        panel.say = lambda _: threads.append(threading.current_thread())
        worker = threading.Thread(target=press, args=(panel, "Home"))
        worker.start()
        worker.join()
        await asyncio.sleep(0.05)
        return threads

    assert asyncio.run(cell()) == [threading.main_thread()]


def test_disposal_and_a_new_one_leave_nothing_behind():
    Fig(placeholder("brings the bundle, which stays", 100)).close()
    before = set(registry._instances)
    for _ in range(2):
        panel = VersionLadder()
        run(panel)
        press(panel, "Home")
        panel.dispose()
    assert set(registry._instances) == before


def test_the_text_form_says_the_plain_call():
    text = repr(VersionLadder())
    call = "version_ladder(schedule='lockstep', stages=4, microbatches=1, backward='newest')"
    assert call in text and text == repr(VersionLadder(*LOCKSTEP))
