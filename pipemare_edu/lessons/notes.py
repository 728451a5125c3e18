"""What the lessons say to a learner: a string that a notebook shows as text, in a quiet frame."""

from __future__ import annotations

import html
import textwrap

WIDTH = 88
COLOURS = {"plain": "#0072B2", "good": "#009E73", "nearly": "#E69F00", "bad": "#D55E00"}


class Note(str):
    """Text that is its own repr.  `tone` (a key of COLOURS) only picks the frame's colour: the
    words say everything."""

    tone: str

    def __new__(cls, text: str, tone: str = "plain") -> Note:
        note = super().__new__(cls, _wrapped(text))
        note.tone = tone
        return note

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        body = html.escape(str(self), quote=False)
        style = f"border-left: 4px solid {COLOURS[self.tone]}; padding-left: 0.8em; margin: 0"
        return f'<pre style="{style}; white-space: pre-wrap">{body}</pre>'


def _wrapped(text: str) -> str:
    """Long lines broken at WIDTH; line breaks and indented lines (code) are kept."""
    return "\n".join(
        line if line.startswith(" ") else textwrap.fill(line, WIDTH, break_on_hyphens=False)
        for line in text.splitlines()
    )
