"""The paper's numbers beside ours, as a text: what was measured, what is reported, what differs."""

from __future__ import annotations

from collections.abc import Sequence

from ..reproduce import reported
from ..reproduce.presets import METHODS
from ..reproduce.summary import Row
from ..studies.reproduction import section
from .notes import Note


def beside(task: str) -> Note:
    """The runs of a task and the paper's closest row, in lines that a narrow page does not break.
    ValueError for a task that was not run."""
    part = section(task)
    paper = reported.row(task, part.case.network)
    head = [
        ["", part.rows[0].score, "", paper.metric if paper else "", "memory", "memory"],
        ["", "measured", "diverged", "reported", "measured", "reported"],
    ]
    notes = list(dict.fromkeys(n for row in part.rows if (n := _remark(row))))
    rows = head + [_cells(row, notes) for row in part.rows]
    kept = [c for c in range(len(head[0])) if any(row[c] for row in rows[len(head) :])]
    widths = {c: max(len(row[c]) for row in rows) for c in kept}
    lines = ["  " + "  ".join(row[c].ljust(widths[c]) for c in kept).rstrip() for row in rows]
    lines += ["", *(f"  ({n}) {note}" for n, note in enumerate(notes, 1))]
    lines += [f"  measured: {part.case.part.kind}, {part.known.about},"]
    known, seeds = part.known, part.rows[0].runs
    lines += [
        f"            P = {known.stages}, N = {known.microbatches}; mean ± spread of {seeds} seeds,"
    ]
    lines += ["            where a run that diverged counts 0"]
    lines += [f"  reported: {paper.setting}"] if paper else []
    return Note("\n".join(lines))


def _remark(row: Row) -> str:
    """What is to be said of a reported number; of a missing one, it stands in its place."""
    value = row.reported_quality
    return value.note if value is not None and value.number is not None else ""


def _cells(row: Row, notes: Sequence[str]) -> list[str]:
    spread = "" if row.spread is None else f" ± {row.spread:.1f}"
    value, note = row.reported_quality, _remark(row)
    return [
        METHODS[row.method],
        "-" if row.mean is None else f"{row.mean:.1f}{spread}",
        f"{row.diverged} of {row.runs}" if row.diverged else "",
        "-"
        if value is None
        else f"{value.number} ({notes.index(note) + 1})"
        if note
        else str(value),
        "-" if row.memory is None else f"{row.memory:.2f}x",
        row.reported_memory,
    ]
