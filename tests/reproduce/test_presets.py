"""Presets by name, and what may be changed in them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from pipemare_edu import tasks
from pipemare_edu.reproduce.presets import FIRST_SEED, PRESETS, Part, choose
from pipemare_edu.reproduce.study import Study
from pipemare_edu.reproduce.summary import clock
from pipemare_edu.tasks.cifar10 import TEST, TRAIN


def test_quick_and_full_are_what_the_course_promises():
    quick, full = PRESETS["quick"], PRESETS["full"]
    assert quick.parts == (Part("words"), Part("shapes")) and len(quick.seeds) == 3
    assert full.parts == (
        Part("words"), Part("phrases"), Part("shapes"), Part("digits", "bottleneck"),
    )  # fmt: skip
    assert len(full.seeds) == 5
    for preset in PRESETS.values():
        assert min(preset.seeds) >= FIRST_SEED and len(set(preset.seeds)) == len(preset.seeds)


def test_a_task_keeps_the_network_that_the_preset_gives_it():
    assert choose("full", ["digits", "regression"]).parts == (
        Part("digits", "bottleneck"), Part("regression"),
    )  # fmt: skip
    assert choose("quick", ["digits"]).parts == (Part("digits"),)
    assert choose("quick", seeds=[12, 40]).seeds == (12, 40)
    assert choose("paper-wmt17", ["wmt17:some/folder"]).parts[0].task == "wmt17:some/folder"


BAD = {
    "unknown": (("ful", []), "unknown preset 'ful': did you mean 'full'"),
    "twice": (("quick", ["words", "words"]), "words is named twice"),
    "seed": (("quick", [], [10, -1]), "seed is -1"),
    "not its own": (("paper-cifar10", ["words"]), "paper-cifar10 is for cifar10:FOLDER"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD)
def test_what_cannot_be_chosen(arguments, message):
    with pytest.raises(ValueError, match=message):
        choose(*arguments)


@pytest.mark.parametrize("name", [name for name in PRESETS if name.startswith("paper-")])
def test_a_paper_preset_without_files_says_which_it_reads(name, tmp_path):
    with pytest.raises(ValueError, match=rf"{PRESETS[name].parts[0].task}:FOLDER, a folder with"):
        Study(PRESETS[name], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_every_setting_of_a_paper_preset_says_where_it_is_from():
    known = "stages microbatches batch steps rate t1 t2 t3".split()
    for preset in PRESETS.values():
        assert list(preset.origins) == (known if preset.parts[0].kind in tasks.READERS else [])
        for text in preset.origins.values():
            assert text.startswith(("as we recall the paper", "our choice", "derived", "reported"))


def files(folder):
    """Two images in each of CIFAR-10's files, and two pairs of sentences in IWSLT14's and WMT17's;
    returns the folder."""
    folder.mkdir()
    for name in (*TRAIN, *TEST):
        batch = {b"data": np.zeros((2, 3072), np.uint8), b"labels": [0, 9]}
        (folder / name).write_bytes(pickle.dumps(batch))
    for part in ("train", "test"):
        (folder / f"{part}.de").write_text("Ja.\nNein.\n")
        (folder / f"{part}.en").write_text("Yes.\nNo.\n")
    return folder


@pytest.mark.parametrize(
    ("name", "stages", "factor"),
    [("cifar10", 107, 14.25), ("iwslt14", 93, 12.5), ("wmt17", 93, 12.5)],
)
def test_a_paper_preset_has_the_papers_pipe(name, stages, factor, tmp_path):
    """P stages and 8 microbatches: by the clock (N+P-1)/N times GPipe's utilization."""
    folder = files(tmp_path / "data")
    study = Study(choose(f"paper-{name}", [f"{name}:{folder}"]), tmp_path / "out")
    [case] = study.cases
    assert {a.config["stages"] for a in study.asked} == {stages} and len(study.asked) == 18
    baseline = clock(case, case.methods["gpipe"]).interval
    assert baseline / clock(case, case.methods["pipemare"]).interval == pytest.approx(factor)


def test_a_folder_is_the_same_from_wherever_it_is_named(tmp_path, monkeypatch):
    files(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    found = [
        [a.config for a in Study(choose("paper-cifar10", [name]), "out").asked]
        for name in ("cifar10:data", f"cifar10:{tmp_path}/data")
    ]
    assert found[0] == found[1]
