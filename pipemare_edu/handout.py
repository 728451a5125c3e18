"""A learner's copy of the lessons, brought up to date without losing what they have written.

A file of the copy is one of these:

    missing                      the new one is put there
    as it was handed out         the new one takes its place
    changed since, the lessons   stays
    not
    changed since, and the       stays, and the new one is put beside it, named for its version:
    lessons too                  01_name.0.2.0.ipynb

RECORD remembers, per file, the digest of what was handed out last, and of which version; `reset`
puts the pristine file in its place and keeps the learner's beside it: 01_name.mine.ipynb.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import __version__
from .trainer.files import write_atomically

HERE = Path(__file__).resolve().parent
PACKAGED = HERE / "notebooks"  # in an installed wheel only: a checkout has them at its top
RECORD = ".handed_out.json"


def lessons() -> Path:
    """The folder of the pristine lessons: the wheel's, or the checkout's."""
    return PACKAGED if PACKAGED.is_dir() else HERE.parent / "notebooks"


@dataclass(frozen=True)
class Change:
    """What happened to one file of the copy.  kind: "new"; "updated"; "beside", where the learner's
    own kept its name and the new one is at `path`; "kept", where a reset moved theirs to `path`."""

    kind: str
    path: Path


def hand_out(target: Path) -> list[Change]:
    """Bring the copy in `target` up to date; returns what changed.  ValueError where nothing can
    be written, and for lessons that lie in a folder of their own and are no copy."""
    if target.resolve() == lessons():
        raise ValueError(f"{target} holds the lessons themselves: name a folder for a copy")
    record = _recorded(target)
    with _writing(target):
        changes = [c for name in _names() if (c := _updated(target, name, record))]
        _write_record(target, record)
    return changes


def reset(target: Path, lesson: str) -> Change:
    """Put a lesson's pristine notebook (named by file or number, "01") into the copy; the
    learner's is kept beside it, under the name that is returned.  ValueError for a lesson that
    there is not, and for one that nobody has changed."""
    books = [name for name in _names() if name.endswith(".ipynb") and "/" not in name]
    found = [n for n in books if lesson in (n, n.removesuffix(".ipynb"), *_numbers(n))]
    if not found:
        raise ValueError(f"there is no lesson {lesson!r}; there are {', '.join(books)}")
    mine, new = target / found[0], (lessons() / found[0]).read_bytes()
    if not os.path.lexists(mine):
        raise ValueError(f"{mine} is not there: `lessons` without --reset puts it there")
    if _digest(mine) == hashlib.sha256(new).hexdigest():
        raise ValueError(f"{mine} is as it was handed out: there is nothing to reset")
    kept, record = free(mine, "mine"), _recorded(target)
    record[found[0]] = hashlib.sha256(new).hexdigest()
    with _writing(target):
        mine.rename(kept)
        write_atomically(mine, new)
        _write_record(target, record)
    return Change("kept", kept)


def _numbers(book: str) -> tuple[str, ...]:
    """A lesson's number as people write it: "01", "1"."""
    number = book.removesuffix(".ipynb").partition("_")[0]
    return (number, str(int(number))) if number.isdecimal() else ()


@contextmanager
def _writing(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ValueError(
            f"the lessons cannot be copied to {target} ({error.strerror}): start from a folder in "
            "which you may write"
        ) from error


def said(changes: Sequence[Change]) -> Iterator[str]:
    """What changed, for a terminal."""
    for kind in ("new", "updated"):
        if count := sum(change.kind == kind for change in changes):
            yield f"{count} {'file is' if count == 1 else 'files are'} {kind}"
    for change in changes:
        if change.kind == "beside":
            yield f"your file stays as it is; the new one is beside it: {change.path}"
        if change.kind == "kept":
            yield f"the lesson is as it was handed out; yours is beside it: {change.path}"


def _updated(target: Path, name: str, record: dict[str, str]) -> Change | None:
    """Bring one file up to date, and its line of the record."""
    mine, new = target / name, (lessons() / name).read_bytes()
    digest, handed_out = hashlib.sha256(new).hexdigest(), record.get(name)
    record[name] = digest
    if not os.path.lexists(mine):
        write_atomically(mine, new)
        return Change("new", mine)
    if _digest(mine) == digest or handed_out == digest:
        return None
    if _digest(mine) == handed_out:
        write_atomically(mine, new)
        return Change("updated", mine)
    beside = free(mine, __version__)
    write_atomically(beside, new)
    return Change("beside", beside)


def _names() -> Iterator[str]:
    """The files of the lessons, relative to their folder."""
    for path in sorted(lessons().rglob("*")):
        name = path.relative_to(lessons())
        hidden = any(part.startswith((".", "__")) for part in name.parts)
        if path.is_file() and not hidden and path.suffix != ".py":
            yield name.as_posix()


def _digest(path: Path) -> str:
    """Of a file's content; of a link, of a folder and of what cannot be read, none: it is the
    learner's own."""
    if path.is_symlink():
        return ""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def free(path: Path, word: str) -> Path:
    """A name beside `path` that nothing has yet: name.word.ipynb, name.word-2.ipynb ..."""
    taken, number = path.with_suffix(f".{word}{path.suffix}"), 1
    while os.path.lexists(taken):
        number += 1
        taken = path.with_suffix(f".{word}-{number}{path.suffix}")
    return taken


def _recorded(target: Path) -> dict[str, str]:
    """The digests in a copy's record; a record that is missing or damaged is as good as none: then
    what differs from the lessons counts as the learner's own."""
    try:
        files = json.loads((target / RECORD).read_text(encoding="utf-8"))["files"]
        return {str(name): str(digest) for name, digest in files.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _write_record(target: Path, record: dict[str, str]) -> None:
    text = json.dumps({"version": __version__, "files": record}, indent=1)
    if not (target / RECORD).is_file() or (target / RECORD).read_text(encoding="utf-8") != text:
        write_atomically(target / RECORD, text.encode())
