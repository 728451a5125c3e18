"""The paper's numbers beside ours, as a text: what was measured, what is reported, what differs."""

from __future__ import annotations

from ..reproduce import reported
from ..reproduce.presets import METHODS
from ..reproduce.summary import Row
from ..studies.reproduction import section
from .notes import Note


def beside(task: str) -> Note:
    """The runs of a task and the paper's closest row.  ValueError for a task that was not run."""
    part = section(task)
    paper = reported.row(task, part.case.network)
    head = [
        "",
        f"{part.rows[0].score}, measured",
        f"{paper.metric}, reported" if paper else "reported",
        "memory, measured",
        "reported",
    ]
    rows = [head, *map(_cells, part.rows)]
    widths = [max(len(row[c]) for row in rows) for c in range(len(head))]
    lines = ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    lines += ["", f"  measured: {part.case.part.kind}, {part.known.about},"]
    lines += [f"            P = {part.known.stages}, N = {part.known.microbatches}"]
    lines += [f"  reported: {paper.setting}"] if paper else []
    return Note("\n".join(lines))


def _cells(row: Row) -> list[str]:
    spread = "" if row.spread is None else f" ± {row.spread:.1f}"
    died = f", {row.diverged} of {row.runs} diverged" if row.diverged else ""
    return [
        METHODS[row.method],
        "-" if row.mean is None else f"{row.mean:.1f}{spread}{died}",
        "-" if row.reported_quality is None else str(row.reported_quality),
        "-" if row.memory is None else f"{row.memory:.2f}x",
        row.reported_memory,
    ]
