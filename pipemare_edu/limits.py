"""What we may use of this machine: in a container or on a course server, less than it has.

    cpus()       CPU cores, as a number that need not be whole
    processes()  how many processes that compute have a core, and memory, each
    memory()     bytes

A limit is the least of what anybody says: affinity, the control group (cgroup, version 1 or 2) that
we are in and those around it, CPU_LIMIT and MEM_LIMIT (JupyterHub's and Binder's: cores and bytes),
and the machine itself.  Imports no torch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_MOUNTED = Path("/sys/fs/cgroup")
_OURS = Path("/proc/self/cgroup")  # lines of number:controllers:path
_NO_LIMIT = 1 << 60  # version 1 writes "none" as the largest number of pages


def cpus() -> float:
    """CPU cores that we may use."""
    usable = [float(os.cpu_count() or 1), _number(os.environ.get("CPU_LIMIT", ""))]
    if hasattr(os, "sched_getaffinity"):
        usable.append(float(len(os.sched_getaffinity(0))))
    for folder in _groups("cpu"):
        first = _words(folder / "cpu.cfs_quota_us") + _words(folder / "cpu.cfs_period_us")
        for quota in (_words(folder / "cpu.max"), first):  # version 2, version 1: amount, period
            if len(quota) == 2 and _number(quota[1]) > 0:
                usable.append(_number(quota[0]) / _number(quota[1]))
    return min(limit for limit in usable if limit > 0)


def memory() -> int | None:
    """Bytes that we may use; None if nobody says."""
    said = [_number(os.environ.get("MEM_LIMIT", "")), _physical()]
    for folder in _groups("memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            said += map(_number, _words(folder / name))
    return min((int(limit) for limit in said if 0 < limit < _NO_LIMIT), default=None)


def processes(each: int = 0) -> int:
    """How many processes that compute may run side by side: one a whole core, at least one, and no
    more than memory holds at `each` bytes."""
    fit, limit = max(1, int(cpus())), memory()
    return fit if not each or limit is None else max(1, min(fit, limit // each))


def _groups(controller: str) -> Iterator[Path]:
    """The folders of the control groups that hold us, as far as they can be seen from here: in a
    container its own is all there is, at the top."""
    yield _MOUNTED
    yield _MOUNTED / controller
    for line in _lines(_OURS):
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        inside = PurePosixPath(path.lstrip("/"))
        if ".." in inside.parts or (controllers and controller not in controllers.split(",")):
            continue
        top = _MOUNTED / controller if controllers else _MOUNTED
        yield from (top / group for group in (inside, *inside.parents))


def _physical() -> float:
    """The machine's own memory, 0 where the system does not say (Windows)."""
    if not hasattr(os, "sysconf"):
        return 0.0
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (OSError, ValueError):
        return 0.0


def _words(path: Path) -> list[str]:
    return [word for line in _lines(path) for word in line.split()]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _number(word: str) -> float:
    """0 for what is no number, "max" among it, and for one below 0, version 1's "none"."""
    try:
        return max(0.0, float(word))
    except ValueError:
        return 0.0
