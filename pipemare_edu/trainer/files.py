"""Files that are either whole or not there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def refuse_other_than_file(path: str | Path) -> None:
    """ValueError if there is something at `path` that is no plain file."""
    if os.path.exists(path) and not os.path.isfile(path):
        kind = "a folder" if os.path.isdir(path) else "a device or the like"
        raise ValueError(f"{path} is {kind}: give the name of a file to write")


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` beside `path`, then rename: a crash leaves the old file or the new one.

    A link stays, and leads to the new file.  ValueError where there is something else than a file.
    """
    refuse_other_than_file(path)
    path = path.resolve()
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
