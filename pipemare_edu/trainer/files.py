"""Files that are either whole or not there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any


def as_path(path: Any) -> Path:
    """`path` as a Path; ValueError for what is no name of a file."""
    if not isinstance(path, str | os.PathLike) or not str(path):
        raise ValueError(f"{path!r} is no name of a file: give text or a Path")
    return Path(path)


def refuse_unwritable(argument: str, path: str | Path) -> None:
    """ValueError, naming the argument, if `path` cannot be written: something else than a file is
    there, or no folder to write in.  What comes after "{step}" is not known yet."""
    refuse_other_than_file(path, f"{argument} ")
    known = os.path.abspath(str(path).partition("{step}")[0] + "x")
    folder = os.path.dirname(known)
    if not (os.path.isdir(folder) and os.access(folder, os.W_OK)):
        raise ValueError(f"{argument} {path}: {folder} is no folder in which one can write")


def refuse_other_than_file(path: str | Path, argument: str = "") -> None:
    """ValueError if there is something at `path` that is no plain file."""
    path = as_path(path)
    if os.path.exists(path) and not os.path.isfile(path):
        kind = "a folder" if os.path.isdir(path) else "a device or the like"
        raise ValueError(f"{argument}{path} is {kind}: give the name of a file to write")


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write `data` beside `path`, then rename: a crash leaves the old file or the new one.

    A link stays, and leads to the new file.  ValueError where there is something else than a file.
    """
    refuse_other_than_file(path)
    path = as_path(path).resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    mask = os.umask(0)
    os.umask(mask)
    try:
        os.chmod(name, 0o666 & ~mask)  # mkstemp makes files that nobody else may read
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
