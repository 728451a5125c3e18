"""What an image for Binder takes from this repository, and that its set-up files agree.

.ci/binder carries out what this only looks at: environment, postBuild, start.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from agreement import disagreements, environment, pins

ROOT = Path(__file__).resolve().parent.parent
FILES = ("pyproject.toml", "constraints.txt", "environment.yml", "binder/environment.yml")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The set-up files, to be tampered with."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_the_set_up_files_agree() -> None:
    assert list(disagreements(ROOT)) == []


NUMPY, TORCH = pins(ROOT)["numpy"], pins(ROOT)["torch"]


@pytest.mark.parametrize(
    ("names", "old", "new", "says"),
    [
        (FILES[3:], "plotly==7", "plotly==6", "environment.yml and binder/environment.yml differ"),
        (
            FILES[2:3],
            "channels:",
            "channels: ",
            "environment.yml and binder/environment.yml differ",
        ),
        (FILES[2:], f"numpy=={NUMPY}", "numpy==1.0", "numpy is 1.0, constraints.txt has"),
        (FILES[2:], f"numpy=={NUMPY}", "numpy", "numpy is of any version"),
        (FILES[2:], "tqdm==", "rich==", "the environment lacks tqdm"),
        (FILES[2:], "voila==", "tensorflow==", "nothing needs tensorflow in the environment"),
        (FILES[2:], "python=3.11", "python", "the environment has python of any version"),
        (FILES[2:], "python=3.11", "python=3.9", "the environment has python 3.9"),
        (FILES[2:], "pytorch-cpu=", "pytorch=", "torch is not the one for the CPU"),
        (FILES[1:2], f"torch=={TORCH}", "torch==2.1.0", "torch is 2.13.0, constraints.txt has 2.1"),
        (FILES[:1], "plotly>=6.0", "plotly>=99", "pyproject.toml wants plotly >=99"),
        (FILES[:1], '"tqdm>=4.67",', '"tqdm>=4.67", "rich>=13",', "the environment lacks rich"),
    ],
)
def test_a_deliberate_disagreement_is_found(
    copy: Path, names: tuple[str, ...], old: str, new: str, says: str
) -> None:
    for name in names:
        text = (copy / name).read_text()
        assert old in text
        (copy / name).write_text(text.replace(old, new))
    assert any(says in found for found in disagreements(copy))


def dockerfile(folder: Path) -> tuple[str, str]:
    """The Dockerfile that the builder of Binder's images writes for a folder, and its log."""
    done = subprocess.run(
        [sys.executable, "-m", "repo2docker", "--no-build", "--debug", str(folder)],
        env=os.environ | {"DOCKER_HOST": "unix:///there/is/none"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, done.stderr


needs_repo2docker = pytest.mark.skipif(
    os.name == "nt", reason="repo2docker does not run on Windows"
)


@needs_repo2docker
def test_the_builder_takes_the_files_in_binder() -> None:
    made, log = dockerfile(ROOT)
    python = environment(ROOT)["python"]
    assert f"Building conda environment for python={python}" in log
    steps = [
        "COPY --chown=0:0 src/binder/environment.yml ${REPO_DIR}/binder/environment.yml",
        'env update -p ${NB_PYTHON_PREFIX} --file "binder/environment.yml"',
        "COPY --chown=0:0 src/ ${REPO_DIR}/",
        "RUN ./binder/postBuild",
        'ENV R2D_ENTRYPOINT="${REPO_DIR}/binder/start"',
    ]
    at = [made.find(step) for step in steps]
    assert -1 not in at and at == sorted(at), list(zip(at, steps, strict=True))
    assert not re.search(r"(?<!binder/)environment\.yml", made)


@needs_repo2docker
def test_the_builder_does_not_see_a_root_file_beside_binder(copy: Path) -> None:
    (copy / "binder" / "environment.yml").unlink()
    made, log = dockerfile(copy)
    assert "environment.yml" not in made
    assert f"python={environment(ROOT)['python']}" not in log


@pytest.mark.skipif(os.name == "nt", reason="the scripts are for Linux containers")
def test_scripts_may_be_executed_and_say_so_in_git() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-s", "binder", ".ci"], cwd=ROOT, capture_output=True, text=True
    )
    modes = {line.split()[-1]: line.split()[0] for line in listed.stdout.splitlines()}
    scripts = ["binder/postBuild", "binder/start", ".ci/binder", ".ci/run"]
    assert {modes[name] for name in scripts} == {"100755"}
    assert all((ROOT / name).read_text().startswith("#!/usr/bin/env bash") for name in scripts)


def started(command: list[str], **env: str) -> str:
    """What a command prints when binder/start starts it."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [ROOT / "binder" / "start", *command],
        cwd=ROOT,
        env=os.environ | {"PATH": path} | env,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.skipif(os.name == "nt", reason="the scripts are for Linux containers")
@pytest.mark.parametrize(("limit", "threads"), [("1.0", "1"), ("0.5", "1"), ("", None)])
def test_start_sets_threads_from_the_containers_limit(limit: str, threads: str | None) -> None:
    from pipemare_edu.limits import processes

    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    wanted = threads or str(processes())
    for name in names:
        assert started(["printenv", name], CPU_LIMIT=limit).strip() == wanted


@pytest.mark.skipif(os.name == "nt", reason="the scripts are for Linux containers")
def test_start_hands_over_the_command_as_it_is() -> None:
    assert started(["printf", "%s|", "a b", "", "--c=d"]) == "a b||--c=d|"
