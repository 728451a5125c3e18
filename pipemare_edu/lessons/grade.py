"""python -m pipemare_edu grade: a folder of saved notebooks becomes a table of verdicts.

What a notebook does runs with the rights of whoever grades: see notebooks/INSTRUCTOR.md.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator
from pathlib import Path

from ..handout import free
from .rerun import Grade, grade

SECONDS = 300.0


def find(folder: Path) -> Iterator[tuple[str, Path]]:
    """The notebooks in a folder and in those below, by name, without Jupyter's checkpoints.

    Raises ValueError if there are none.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder} is no folder: give the one that the notebooks are in")
    inside = sorted(path.relative_to(folder) for path in folder.rglob("*.ipynb"))
    names = [path for path in inside if ".ipynb_checkpoints" not in path.parts]
    if not names:
        raise ValueError(f"there is no notebook (.ipynb) in {folder}")
    return ((path.as_posix(), folder / path) for path in names)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def arguments(parser: argparse.ArgumentParser, argv: list[str]) -> argparse.Namespace:
    """The command's arguments."""
    parser.description = "Run each notebook of a folder afresh, and write a CSV of the verdicts."
    parser.add_argument("folder", type=Path, help="notebooks, also in folders below")
    parser.add_argument("--out", type=Path, default=Path("grades.csv"), help="the CSV (grades.csv)")
    parser.add_argument(
        "--timeout", type=_seconds, default=SECONDS, metavar="SECONDS",
        help=f"for each notebook ({SECONDS:g})",
    )  # fmt: skip
    return parser.parse_args(argv)


def main(parser: argparse.ArgumentParser, argv: list[str]) -> int:
    """Grade; returns 0.  Rows are in the file as soon as their notebook has run, so that Ctrl-C
    loses one notebook only; an earlier table is kept beside it.

    Raises ValueError if there is nothing to grade, or no place for the table.
    """
    args = arguments(parser, argv)
    found = list(find(args.folder))
    try:
        if args.out.is_file() and args.out.stat().st_size:
            kept = args.out.rename(free(args.out, "earlier"))
            print(f"the table that was there is now {kept}", file=sys.stderr)
        file = args.out.open("w", newline="", encoding="utf-8")
    except OSError as error:
        raise ValueError(f"--out {args.out}: {error.strerror}") from None
    with file:
        table = csv.writer(file)
        table.writerow(Grade._fields)
        for n, (name, path) in enumerate(found, start=1):
            rows = grade(path, name, args.timeout)
            table.writerows(rows)
            file.flush()
            print(f"{n}/{len(found)} {name}: {_summary(rows)}", file=sys.stderr)
    print(f"{len(found)} notebooks in {args.out}")
    return 0


def _summary(rows: list[Grade]) -> str:
    """How many exercises have which status, and what befell the notebook as a whole."""
    states = [row.status for row in rows]
    return ", ".join(f"{states.count(s)} {s}" for s in dict.fromkeys(states))
