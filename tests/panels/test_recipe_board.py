"""RecipeBoard, without a browser: clicked, changed, cancelled, broken."""

from __future__ import annotations

import asyncio

import pytest
from ipywidgets.widgets import widget as registry

from pipemare_edu.figures import describe, placeholder
from pipemare_edu.figures.fig import Fig
from pipemare_edu.panels import RecipeBoard, recipe_board
from pipemare_edu.panels.squares import COLUMNS, at, place_of, rows_of
from pipemare_edu.studies.recipe import STEPS
from pipemare_edu.studies.recipes import result
from pipemare_edu.training import Job

DIES = {"t2": False, "rate": 0.8}  # within some tens of steps, so that a test is quick


def run(panel: RecipeBoard) -> str:
    """Click Run and wait, as a cell does."""

    async def cell() -> str:
        panel.run.click()
        return await panel.wait()

    return asyncio.run(cell())


def test_a_live_run_agrees_with_the_shipped_one():
    panel = RecipeBoard(stages=4, seed=1)
    assert run(panel) == "done"
    shipped = result(panel.now.cell).of(1)
    assert panel.result().agrees(shipped) and panel.result().diverged is None
    assert "the shipped run ended at" in panel.status.value
    assert "they agree" in panel.status.value
    live = panel.figures["runs"].shown.data[-1]
    assert live.name == "live, seed 1" and live.x[-1] == STEPS
    assert len(panel.figures["board"].shown.data[-1].x) == 1  # a star


def test_a_live_run_that_diverges_agrees_too():
    panel = RecipeBoard(**DIES)
    assert run(panel) == "diverged"
    assert panel.result().diverged and "diverged at step" in panel.status.value
    assert "they agree" in panel.status.value
    assert "live, seed 0 diverged at step" in panel.figures["runs"].alt


def test_a_seed_that_was_not_shipped_says_so():
    panel = RecipeBoard(**DIES, seed=77)
    run(panel)
    assert "No run of this seed was shipped" in panel.status.value


def test_the_plain_call_gives_the_same_figures():
    panel, plain = RecipeBoard(**DIES), recipe_board(**DIES)
    run(panel)
    for name, figure in plain.figures.items():
        assert figure.to_json() == panel.figures[name].shown.to_json()
        assert describe(figure) == panel.figures[name].alt
    assert plain.value == panel.result()
    assert recipe_board(seed=None)["board"].to_json() == (
        RecipeBoard().figures["board"].shown.to_json()
    )


def test_every_control_is_followed_at_once():
    panel = RecipeBoard()
    changes = {
        "t1": True, "t2": False, "t3": True, "warm_up": 120, "stages": 12, "rate": 0.1, "seeds": 2,
        "synchronous": True,
    }  # fmt: skip
    assert {*changes, "seed"} == set(panel.controls)
    seen = [panel.figures["runs"].alt]
    for name, value in changes.items():
        panel.controls[name].value = value
        assert panel.figures["runs"].alt != seen[-1], name
        seen.append(panel.figures["runs"].alt)
        assert "utilization" in panel.status.value
    panel.controls["seed"].value = 3
    assert panel.now.seed == 3 and panel.error is None


@pytest.mark.parametrize("columns", COLUMNS)
def test_every_cell_can_be_chosen_by_click_and_by_key(columns):
    panel = RecipeBoard(columns=columns, t3=True)
    board = panel.figures["board"]
    ids = board.shown.data[0].ids
    assert len(set(ids)) == len(rows_of(columns)) * len(COLUMNS[columns])
    for id in ids[:: len(ids) // 4]:
        panel._clicked_on(id)
        framed = [w > 0 for w in board.shown.data[0].marker.line.width]
        assert [i for i, f in zip(ids, framed, strict=True) if f] == [id]
    panel._clicked_on("1 1")
    for key in ("ArrowLeft", "ArrowUp", "ArrowUp", "ArrowRight"):
        panel._pressed(key)
    assert place_of(panel.now.place, columns) == (0, 1) and panel.error is None


def test_every_seed_of_a_cell_is_told():
    panel = RecipeBoard(t2=False, t3=True, rate=0.2, seeds=3)
    found = result(panel.now.cell).first(3)
    (text,) = [
        hover
        for hover, width in zip(
            panel.figures["board"].shown.data[0].customdata,
            panel.figures["board"].shown.data[0].marker.line.width,
            strict=True,
        )
        if width
    ]
    for outcome in found.outcomes:
        ended = "diverged" if outcome.diverged else f"{outcome.score:.1f} %"
        assert f"seed {outcome.seed}: {ended}" in text
        assert f"shipped, seed {outcome.seed}" in panel.figures["runs"].alt


def test_the_goal_wants_a_live_run_of_a_recipe_that_holds():
    panel = RecipeBoard(stages=8, rate=0.8)
    assert not panel.reached()
    panel.set(t2=False)
    run(panel)
    assert not panel.reached()


def test_cancel_and_a_control_moved_meanwhile():
    panel = RecipeBoard(stages=12, rate=0.1)

    async def cell():
        panel.run.click()
        while panel.value() is None:
            await asyncio.sleep(0.005)
        panel.controls["stages"].value = 4
        panel.cancel.click()
        return await panel.wait()

    assert asyncio.run(cell()) == "cancelled"
    assert panel.result().steps < STEPS and "Cancelled after step" in panel.status.value
    assert not panel.lives
    assert not any("live" in t.name for t in panel.figures["runs"].shown.data)


def broken(*args, **kwargs):
    raise ZeroDivisionError("broken on purpose")


def test_an_error_in_the_trainer_shows_and_is_raised(monkeypatch):
    monkeypatch.setattr(Job, "chunks", broken)
    panel = RecipeBoard()
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        run(panel)
    assert "broken on purpose" in panel.status.value


def test_an_error_after_a_change_shows_and_is_raised(monkeypatch):
    panel = RecipeBoard()
    monkeypatch.setattr("pipemare_edu.panels.board.cell_runs", broken)
    panel.controls["stages"].value = 4
    assert "broken on purpose" in panel.status.value
    with pytest.raises(ZeroDivisionError):
        panel.result()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"stages": 5}, "unknown stages 5.*There are 4, 8, 12"),
        ({"rate": 0.3}, "unknown rate 0.3"),
        ({"warm_up": 0}, "unknown warm_up 0"),
        ({"seeds": 0}, "unknown seeds 0"),
        ({"columns": "stage"}, "did you mean 'stages'"),
    ],
)
@pytest.mark.parametrize("make", [RecipeBoard, recipe_board], ids=["panel", "plain call"])
def test_what_is_not_on_the_board_is_refused(make, given, says):
    with pytest.raises(ValueError, match=says):
        make(**given)


def test_beyond_the_edge_is_the_edge():
    place = RecipeBoard().now.place
    assert at(place, "rate", -1, 99).rate == 0.8
    assert at(place, "rate", -1, 99).recipe.synchronous


def test_disposal_and_a_new_one_leave_nothing_behind():
    Fig(placeholder("brings the bundle, which stays", 100)).close()
    before = set(registry._instances)
    for _ in range(2):
        panel = RecipeBoard(**DIES)
        run(panel)
        panel.dispose()
    assert set(registry._instances) == before


def test_the_text_form_says_the_plain_call():
    text = repr(RecipeBoard())
    assert text.startswith("RecipeBoard(t1=False, t2=True") and "recipe_board(t1=False" in text
