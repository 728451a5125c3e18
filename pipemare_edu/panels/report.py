"""What a panel reports: how far it is, how it stands, and what went wrong in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as w

from . import words


class Report:
    """progress, status  widgets
    error             what went wrong last, or None
    """

    def __init__(self) -> None:
        self.progress = w.FloatProgress(0.0, min=0.0, max=1.0, layout={"width": "220px"})
        self.status = w.HTML(words.status("Ready."))
        self.error: BaseException | None = None

    def say(self, text: str) -> None:
        """Show `text` as the status."""
        self.status.value = words.status(text)

    def guarded(self, callback: Callable[..., Any]) -> Callable[..., None]:
        """`callback`, with its errors shown in the panel and kept for wait() and result().

        ipywidgets writes them to a log that a learner never opens and a test never reads.
        """

        def run(*args: Any) -> None:
            try:
                callback(*args)
            except Exception as error:
                self._fail(error)

        return run

    def _fail(self, error: BaseException) -> None:
        self.error = error
        self.progress.bar_style = "danger"
        self.status.value = words.failure(error)

    def _raise(self) -> None:
        if self.error is not None:
            raise self.error
