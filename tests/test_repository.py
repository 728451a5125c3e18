"""The repository itself: set-up files that agree with one another, and a JupyterLab that opens."""

from __future__ import annotations

import importlib.metadata
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from agreement import pins, project
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
TOP_LEVEL = set(
    """notebooks pipemare_edu tests binder environment.yml README.md pyproject.toml Makefile
    constraints.txt LICENSE .gitignore .gitattributes .ci CITATION.cff CHANGELOG.md
    CONTRIBUTING.md INSTRUCTOR.md""".split()
)
SET_UP_FILES = """pyproject.toml constraints.txt Makefile environment.yml binder/environment.yml
    binder/postBuild binder/start .ci/run .ci/binder""".split()


def test_constraints_name_everything_that_a_set_up_installs() -> None:
    """Walks what the installed package needs here; torch pins its own CUDA packages."""
    pinned, seen = pins(ROOT), set()
    todo = [("pipemare-edu", "test")]
    while todo:
        item = todo.pop()
        name, extra = item
        if item in seen or name == "torch":
            continue
        seen.add(item)
        for need in map(Requirement, importlib.metadata.requires(name) or ()):
            if need.marker is None or need.marker.evaluate({"extra": extra}):
                needed = canonicalize_name(need.name)
                todo += [(needed, asked) for asked in ("", *need.extras)]
    missing = {name for name, _ in seen} - {"pipemare-edu"} - set(pinned)
    assert not missing, f"constraints.txt has no version for {sorted(missing)}"


def test_torch_is_pinned_to_a_plain_release() -> None:
    assert pins(ROOT)["torch"] == "2.13.0"


@pytest.mark.parametrize("name", SET_UP_FILES)
def test_no_build_tag_and_no_package_index(name: str) -> None:
    text = (ROOT / name).read_text()
    assert not re.search(r"\+c(pu|u\d+)\b|index-url|find-links|https?://", text)


def test_license_is_mit() -> None:
    assert (ROOT / "LICENSE").read_text().startswith("MIT License")
    assert project(ROOT)["license"] == "MIT"


def test_top_level_holds_only_what_it_should() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert {path.partition("/")[0] for path in listed.split("\0") if path} <= TOP_LEVEL


@pytest.mark.skipif(os.name == "nt", reason="stopping by SIGINT needs a POSIX system")
def test_lab_opens_beside_a_busy_port_and_stops_cleanly(tmp_path: Path) -> None:
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "first.txt").write_text("here")
    runtime = tmp_path / "runtime"
    env = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    env.pop("JUPYTER_TOKEN", None)
    env |= {"JUPYTER_RUNTIME_DIR": str(runtime), "JUPYTER_CONFIG_DIR": str(tmp_path / "config")}
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        usual = busy.getsockname()[1]
        lab = subprocess.Popen(
            [sys.executable, "-m", "pipemare_edu.lab", f"--port={usual}"],
            cwd=tmp_path,
            env=env,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert lab.stderr is not None
            urls = (re.search(r"http://127\.0\.0\.1:(\d+)/lab(\S+)", line) for line in lab.stderr)
            found = next(filter(None, urls))
            port, token = int(found[1]), found[2]
            assert port != usual and token.startswith("?token=")
            page = read(found[0])
            assert "@jupyterlab/apputils-extension:announcements" in page
            assert read(f"http://127.0.0.1:{port}/files/first.txt{token}") == "here"
            lab.send_signal(signal.SIGINT)
            assert lab.wait(20) == 0
        finally:
            lab.kill()
            lab.communicate()
    assert not list(runtime.glob("jpserver-*"))


def read(url: str) -> str:
    """The page at url; the address is printed a moment before the server listens."""
    for _ in range(100):
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return answer.read().decode()
        except (ConnectionError, urllib.error.URLError):
            time.sleep(0.1)
    raise AssertionError(f"nothing answers at {url}")
