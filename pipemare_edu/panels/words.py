"""What a panel says, as HTML that a screen reader follows.

A panel's status is a live region: a screen reader speaks it when it changes.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping
from html import escape
from typing import Any

RED = "var(--jp-error-color1, #c4401c)"
TWO_LINES = "line-height:1.4;min-height:2.8em"  # what is below stays where it is at the second one


def status(text: str) -> str:
    said = f'<div class="pipemare-status" role="status" aria-live="polite" style="{TWO_LINES}">'
    return f"{said}{escape(text)}</div>"


def failure(error: BaseException) -> str:
    """The error in a line, and the traceback to be opened below it.

    A ValueError is about what was asked for, and its text is all there is to say.
    """
    if isinstance(error, ValueError):
        return _alert(str(error))
    text = "".join(traceback.format_exception(error))
    return _alert(f"{type(error).__name__}: {error}") + (
        f"<details><summary>traceback</summary>"
        f"<pre style='max-height:16em;overflow:auto'>{escape(text)}</pre></details>"
    )


def _alert(text: str) -> str:
    style = f"color:{RED};white-space:pre-wrap;{TWO_LINES}"
    return f'<div class="pipemare-status" role="alert" style="{style}">{escape(text)}</div>'


def goal(sentence: str, reached: bool) -> str:
    mark = "✔ reached" if reached else "not yet reached"
    return f'<div class="pipemare-goal"><b>Goal.</b> {escape(sentence)} <i>({mark})</i></div>'


def in_words(text: str) -> str:
    return f"<details><summary>This figure in words</summary><p>{escape(text)}</p></details>"


def text_form(
    panel: str,
    given: Mapping[str, Any],
    shows: str = "a figure",
    buttons: str = "controls, Run, Cancel",
) -> str:
    """A panel's fixed text form: its call, and the plain call of the same name and arguments.

    given    arguments by name; those that are None are left out
    shows    what it shows, in words
    buttons  what there is to use, in words
    """
    arguments = ", ".join(f"{k}={v!r}" for k, v in given.items() if v is not None)
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", panel).lower()
    figures = "figures" if shows.endswith("s") else "figure"
    return (
        f"{panel}({arguments}): {buttons} and {shows}, in Jupyter.\n"
        f"Without widgets, {plain}({arguments}) gives the same {figures}."
    )
