"""What running a lesson takes where Binder runs it: one core, and 1 GB for everything.

    python -m pipemare_edu.lessons.cost [--write README.md] [lesson ...]

Every lesson runs in the binder profile on one core.  Each of its processes, kernel and workers, may
allocate LIMIT bytes (RLIMIT_DATA); if all together hold more, the largest is killed, as a
container's would be.  --write puts the table into a file, between the marks, and leaves the rows of
other lessons as they are.  Linux only.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any, NamedTuple

import nbformat
import psutil

from .build import execute, path_of
from .source import lessons

LIMIT = 1 << 30
BETWEEN = 0.05  # seconds between two looks
PATIENCE = 600  # seconds for a cell: a busy machine is no error here
MEGABYTE = 10**6
MARKS = "<!-- from python -m pipemare_edu.lessons.cost -->", "<!-- to here -->"
HEAD = "| lesson | processor | peak memory | processes | measured |\n|---|---|---|---|---|\n"
SERVER = "JupyterLab itself"


class Cost(NamedTuple):
    """seconds    of the processor
    peak       bytes that kernel and workers held together, at most
    processes  how many there were at a time, at most
    """

    seconds: float
    peak: int
    processes: int


class Watch:
    """While it is entered, it looks after every process that this one starts: peak memory and
    number, and `limit` bytes at most."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit, self.peak, self.processes = limit, 0, 0
        self._before = set(psutil.Process().children(recursive=True))
        self._limited: set[psutil.Process] = set()
        self._over = Event()
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(BETWEEN):
            alive = set(psutil.Process().children(recursive=True)) - self._before
            # Twice, and the less counts: while a worker ends, what it shared is read from it and,
            # a moment later, from those that hold it now.
            readings = [{process: Held.by(process.pid) for process in alive} for _ in range(2)]
            held = min(readings, key=lambda reading: together(list(reading.values())))
            total = together(list(held.values()))
            self.peak, self.processes = max(self.peak, total), max(self.processes, len(alive))
            for process in alive - self._limited:
                with suppress(OSError):  # it has ended meanwhile
                    resource.prlimit(process.pid, resource.RLIMIT_DATA, (self.limit, self.limit))
                self._limited.add(process)
            if total > self.limit:
                with suppress(psutil.NoSuchProcess):
                    max(held, key=lambda process: held[process].own).kill()


class Held(NamedTuple):
    """Bytes of one process.  own: memory of its own, what it shares divided by those who share it
    (a forked worker with its server); files: mapped files, libraries above all; highest: its
    largest resident size so far."""

    own: int = 0
    files: int = 0
    highest: int = 0

    @classmethod
    def by(cls, pid: int) -> Held:
        """Of the process `pid`; nothing if it has ended."""
        try:
            mapped = _sizes(Path(f"/proc/{pid}/smaps_rollup"))
            status = _sizes(Path(f"/proc/{pid}/status"))
        except OSError:
            return cls()
        own = mapped.get("Pss_Anon", 0) + mapped.get("Pss_Shmem", 0)
        return cls(own, status.get("RssFile", 0), status.get("VmHWM", 0))


def together(held: Sequence[Held]) -> int:
    """Bytes that processes hold together: each one's own, and the files once, since they map the
    same ones; never less than one alone has held."""
    now = sum(h.own for h in held) + max((h.files for h in held), default=0)
    return max([now, *(h.highest for h in held)])


def _sizes(path: Path) -> dict[str, int]:
    """Lines of the form `Name:  n kB`, in bytes."""
    found = re.findall(r"^(\w+):\s+(\d+) kB$", path.read_text(), re.MULTILINE)
    return {name: 1024 * int(size) for name, size in found}


def measure(lesson: str) -> Cost:
    """What a lesson takes, run as a learner gets it."""
    return run(nbformat.read(path_of(lesson, solved=False), as_version=4))


def run(book: Any, limit: int = LIMIT) -> Cost:
    """Run a notebook in place.  Raises what a cell raises, MemoryError among it; DeadKernelError
    if the kernel is the one killed."""
    there = {"PIPEMARE_EDU_PROFILE": "binder", "CPU_LIMIT": "1.0", "MEM_LIMIT": str(limit)}
    with Watch(limit) as watch:
        seconds = execute(book, strict=False, there=there, patience=PATIENCE)
    return Cost(seconds, watch.peak, watch.processes)


def server() -> Cost:
    """What JupyterLab takes once it answers, without a kernel."""
    command = [sys.executable, "-m", "pipemare_edu", "lab", "--no-browser"]
    with TemporaryDirectory() as empty, Watch() as watch:
        lab = subprocess.Popen(
            command, cwd=empty, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        try:
            next(line for line in lab.stderr or () if "http://127.0.0.1" in line)
            time.sleep(1)  # it prints the address a moment before it answers
            used = psutil.Process(lab.pid).cpu_times()
        finally:
            lab.terminate()
            lab.communicate()
    return Cost(used.user + used.system, watch.peak, watch.processes)


def row(name: str, cost: Cost) -> str:
    """A line of the table."""
    seconds, peak = f"{cost.seconds:.0f} s", f"{cost.peak / MEGABYTE:.0f} MB"
    return f"| {name} | {seconds} | {peak} | {cost.processes} | {date.today()} |"


def merged(text: str, rows: Sequence[str]) -> str:
    """`text` with `rows` in the table between its marks, in place of the older ones of the same
    name.  ValueError if it has no marks."""
    start, first, rest = text.partition(MARKS[0])
    old, second, end = rest.partition(MARKS[1])
    if not (first and second):
        raise ValueError(f"the file has no {MARKS[0]} with {MARKS[1]} after it")
    lines = [line for line in old.splitlines() if line.startswith("| ")][1:]
    named = {line.split("|")[1]: line for line in [*lines, *rows]}
    table = "\n".join(sorted(named.values()))
    return f"{start}{first}\n\n{HEAD}{table}\n\n{second}{end}"


def chosen(names: Sequence[str]) -> list[str]:
    """The lessons called so, by name or number; all if there are no names.  ValueError for one
    that there is not."""
    known = lessons()
    if unknown := [n for n in names if not any(n in (k, k.partition("_")[0]) for k in known)]:
        raise ValueError(f"there is no lesson {unknown[0]!r}; there are {', '.join(known)}")
    return [k for k in known if not names or k in names or k.partition("_")[0] in names]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print a row as each lesson ends."""
    parser = argparse.ArgumentParser(prog="python -m pipemare_edu.lessons.cost")
    parser.add_argument("lesson", nargs="*", help="by name or number; all, and the server, if none")
    parser.add_argument("--write", metavar="FILE", type=Path, help="put the table in this file")
    args = parser.parse_args(argv)
    rows = []
    for lesson in chosen(args.lesson):
        rows.append(row(lesson.partition("_")[0], measure(lesson)))
        print(rows[-1], flush=True)
    if not args.lesson:
        rows.append(row(SERVER, server()))
        print(rows[-1])
    if args.write:
        args.write.write_text(merged(args.write.read_text(encoding="utf-8"), rows), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
