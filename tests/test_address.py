"""The repository's address stands in one place, and every link to it follows from there."""

from __future__ import annotations

import subprocess
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from pipemare_edu.lessons import address

ROOT = Path(__file__).resolve().parent.parent
HOME = "pipemare_edu/lessons/address.py"


def tracked() -> dict[str, str]:
    """The texts of all files under version control, this one aside."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    found = {}
    for name in filter(None, listed.stdout.decode().split("\0")):
        data = (ROOT / name).read_bytes() if (ROOT / name).is_file() else b"\0"
        if b"\0" not in data and ROOT / name != Path(__file__):
            found[name] = data.decode("utf-8")
    return found


def test_every_link_follows_from_the_one_address() -> None:
    texts = tracked()
    assert address.REPOSITORY in texts[HOME]
    drifted = [name for name, text in texts.items() if address.moved(text) != text]
    assert not drifted, f"python -m pipemare_edu.lessons.address {' '.join(drifted)}"


def test_nothing_but_links_spells_the_address() -> None:
    for name, text in tracked().items():
        if name != HOME:
            assert address.REPOSITORY not in address.LINK.sub("", text), name


def test_the_readme_has_both_badges() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for badge in address.badges():
        assert badge in text


def test_badges_open_what_is_there() -> None:
    for path, server in ((address.COURSE, "lab/tree/"), (address.DEMO, "voila/render/")):
        url = urlsplit(address.binder(server + path))
        assert url.path == f"/v2/gh/{address.REPOSITORY}/HEAD"
        assert parse_qs(url.query) == {"urlpath": [server + path]}
        assert unquote(url.query).endswith(path)
    assert (ROOT / address.COURSE).is_file() and (ROOT / address.DEMO).is_file()


def test_a_fork_moves_every_link(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = "\n".join([*address.badges(), "https://github.com/someone/else stays"])
    page = tmp_path / "page.md"
    page.write_text(before)
    monkeypatch.setattr(address, "REPOSITORY", "a-school/pipemare_edu")
    assert address.main([str(page)]) == 0
    assert page.read_text() == "\n".join(
        [*address.badges(), "https://github.com/someone/else stays"]
    )
    assert page.read_text() != before
