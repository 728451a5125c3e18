"""CONTRIBUTING.md keeps its word: its method and its schedule work from outside the package."""

from __future__ import annotations

import asyncio
import importlib
import re
import sys
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import pytest

import pipemare_edu as pm
from pipemare_edu import figures, panels
from pipemare_edu.compare import compare, methods_for, table
from pipemare_edu.trainer import registry

TEXT = (Path(__file__).resolve().parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
NAME = "foresight"
SMALL = {"stages": 4, "steps": 40}


def example(heading: str, number: int = 0) -> str:
    """A Python block of the section called `heading`."""
    section = TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)[number]


def lines(code: str) -> int:
    return sum(bool(line.strip()) for line in code.splitlines())


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The method's example as a learner's own file, imported, with the names as before after it."""
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))
    (tmp_path / "learners_method.py").write_text(example("A method"), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "learners_method", raising=False)
    return importlib.import_module("learners_method")


def test_the_examples_are_as_short_as_promised() -> None:
    assert lines(example("A method")) <= 30
    assert lines(example("A schedule")) <= 15


def test_the_method_is_unknown_until_its_file_is_imported() -> None:
    assert NAME not in pm.method_names()


def test_the_method_trains_by_name_as_it_says(outside: ModuleType) -> None:
    run = pm.train("digits", method=NAME, **SMALL)
    assert run.status == "done" and run.config["method"].startswith("Foresight(")
    assert [d.mean for d in run.staleness.forward] == [7, 5, 3, 1]
    assert [m["correction"] for m in run.memory] == [m["weights"] for m in run.memory]
    plain = pm.train("digits", method="pipemare-t1", **SMALL)
    assert run.losses[0] == plain.losses[0] and run.losses != plain.losses


def test_the_forward_reads_tau_deltas_ahead(outside: ModuleType) -> None:
    import torch

    policy = outside.Foresight().weights(torch.tensor([1.0, 2.0]), tau=3.0)
    policy.before_update(0, in_use=True)
    policy.newest += torch.tensor([0.5, -1.0])
    policy.before_update(1, in_use=True)
    ahead = policy.newest + 3 * policy.delta
    policy.write(policy.newest.clone(), 0)
    torch.testing.assert_close(policy.newest, ahead)
    assert policy.alters("F", 0, 1, True) and not policy.alters("B", 0, 1, True)
    assert not policy.alters("F", 0, 1, False), "during T3 nothing is guessed"


def test_the_method_is_compared_by_name(outside: ModuleType) -> None:
    methods = methods_for("digits", ["gpipe", NAME], SMALL)
    records = list(compare("digits", methods, seeds=1, **SMALL))
    assert [r["method"] for r in records] == ["gpipe", NAME]
    assert records[1]["loss"] == pm.train("digits", method=NAME, **SMALL).losses[-1]
    assert NAME in table(records, "digits")


def test_the_method_is_in_a_panels_menu_and_runs_there(outside: ModuleType) -> None:
    panel = panels.LiveTraining(method=NAME, **SMALL)
    assert NAME in panel.controls["method"].options

    async def cell() -> str:
        panel.run.click()
        return await panel.wait()

    assert asyncio.run(cell()) == "done"
    assert panel.result().losses == pm.train("digits", method=NAME, **SMALL).losses


def test_the_method_is_in_figures_by_name(outside: ModuleType) -> None:
    run = pm.train("digits", method=NAME, **SMALL)
    drawn = figures.curves({NAME: run})
    assert NAME in {trace.name for trace in drawn.data}
    assert NAME in figures.describe(drawn)
    assert figures.staleness_bars(run.staleness).data


def test_the_second_example_runs_as_it_stands(
    outside: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    code = example("A method", 1)
    shorter = {
        'train("digits", method="foresight")': 'train("digits", method="foresight", steps=40)',
        "seeds=3": "seeds=1, stages=4, steps=40",
    }
    for long, short in shorter.items():
        assert long in code
        code = code.replace(long, short)
    exec(code, {"pm": pm})
    assert re.search(r"^foresight .* 0 of 1", capsys.readouterr().out, re.MULTILINE)


def test_the_schedule_has_gpipes_gradients_fewer_in_flight_and_more_bubbles() -> None:
    space: dict = {}
    exec(example("A schedule") + example("A schedule", 1).replace("print", "found ="), space)
    assert Fraction(3, 11) < space["found"] < 1
    options = {"stages": 4, "steps": 8, "microbatches": 5}
    waves = pm.train("digits", method=space["Waves"](), **options)
    gpipe = pm.train("digits", method="gpipe", **options)
    assert waves.losses == gpipe.losses
    kept = [run.memory[0]["activations"] for run in (waves, gpipe)]
    assert kept[0] < kept[1]


def test_a_common_delay_costs_what_is_said() -> None:
    assert pm.PipeMare(depth=[3, 3, 3, 3]).taus(4, 1) == (3, 3, 3, 3)
    lists = pm.schedule([3, 3, 3, 3], stages=4, microbatches=1, steps=12)
    assert pm.simulate(lists).steady_utilization == pytest.approx(0.25)
