"""Panel: what every panel shares.

    goal
    controls (what to run) and views (how to draw it)
    [Run] [Cancel]  progress
    status
    figures, each with its description

A panel runs nothing until Run is clicked.  In a cell: panel.run.click(); print(await panel.wait()).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import ipywidgets as w

from ..figures import Figure, describe
from ..figures.fig import Fig
from . import words
from .cells import Cells
from .controls import close, row
from .loop import Worker

DRAW_EVERY = 0.1  # seconds, at least
DRAW_SHARE = 0.2  # of the time, at most


@dataclass(frozen=True)
class Goal:
    """What a learner should bring about: a sentence, and a test of the panel."""

    sentence: str
    reached: Callable[[Any], bool]


class Panel:
    """Subclasses give `work` and `draw`, and may give `outcome`.

    controls  name -> widget, in the order in which they are shown; they set what Run does
    views     the same, for what only changes the drawing: each change redraws
    text      the text form: fixed, and saying what to call where widgets do not draw

    Where drawing takes milliseconds, a subclass lets the figures `follow` controls, too.
    """

    def __init__(
        self,
        controls: Mapping[str, w.Widget],
        text: str,
        goal: Goal | None = None,
        views: Mapping[str, w.Widget] | None = None,
    ) -> None:
        self.controls, self.views = dict(controls), dict(views or {})
        self.text, self.goal = text, goal
        self.run = w.Button(description="Run", button_style="primary", icon="play")
        self.cancel = w.Button(description="Cancel", disabled=True, icon="stop")
        self.progress = w.FloatProgress(0.0, min=0.0, max=1.0, layout={"width": "220px"})
        self.status = w.HTML(words.status("Ready."))
        self.figures = {name: Fig(figure) for name, figure in self.draw().items()}
        self._words = {name: w.HTML(words.in_words(f.alt)) for name, f in self.figures.items()}
        self._goal = w.HTML()
        self.error: BaseException | None = None
        self.stopping = False
        self._drawn, self._wait = 0.0, DRAW_EVERY
        self._worker = Worker(self._begin, self._advance, self._end)
        self.run.on_click(self.guarded(lambda _: self._clicked()))
        self.cancel.on_click(self.guarded(lambda _: self._cancelled()))
        for view in self.views.values():
            self.follow(view)
        self._show_goal()
        self.view = self._layout()
        Cells.claim(self)

    # What a subclass gives

    def work(self, settings: dict[str, Any]) -> Generator[float, None, None]:
        """Do the work in chunks of about 50 ms; yield how much is done, from 0 to 1.

        Look at self.stopping after every chunk, and end soon when it is set.
        """
        raise NotImplementedError

    def draw(self, live: bool = False) -> dict[str, Figure]:
        """The figures as they are now; live=True: only those worth drawing while work goes on."""
        raise NotImplementedError

    def outcome(self) -> tuple[str, str]:
        """A word for how the work stands (done, cancelled ...) and a sentence."""
        return ("cancelled", "Cancelled.") if self.stopping else ("done", "Done.")

    def value(self) -> Any:
        """What `result` returns."""
        return None

    def follow(self, widget: w.Widget) -> None:
        """Draw anew whenever the value of `widget` has changed: a view, or a control of a panel
        whose drawing takes milliseconds."""
        redraw = self.guarded(lambda: self._redraw(live=False))
        widget.observe(lambda _: self._worker.call(redraw), "value")

    # What a learner, a cell or a test calls

    @property
    def settings(self) -> dict[str, Any]:
        """The values of the controls."""
        return {name: control.value for name, control in self.controls.items()}

    @property
    def busy(self) -> bool:
        return self._worker.busy

    async def wait(self) -> str:
        """Wait until the work has ended; returns how it ended, in a word.  Raises what ended it,
        or went wrong in a callback since Run was clicked."""
        try:
            await self._worker.wait()
        finally:
            if self.busy:  # the waiting cell was interrupted, and that means stop
                self._cancelled()
        self._raise()
        return self.outcome()[0]

    def result(self) -> Any:
        """What the last work gave.  Raises what ended it; RuntimeError while it goes on."""
        if self.busy:
            raise RuntimeError("still running: await panel.wait() first")
        self._raise()
        return self.value()

    def reached(self) -> bool:
        """Is the goal reached?"""
        return self.goal is not None and bool(self.goal.reached(self))

    def dispose(self) -> None:
        """End the work, take the panel off every page, and let go of its widgets."""
        self.stopping = True
        self._worker.dispose()
        close(self.view)

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

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        view = self.view._repr_mimebundle_(**options) or {}
        return {**view, "text/plain": self.text}

    # From a click to the end of the work

    def _clicked(self) -> None:
        if self.run.disabled:
            return
        self.error, self.stopping = None, False
        self.run.disabled, self.cancel.disabled = True, False
        self.progress.value, self.progress.bar_style = 0.0, ""
        self.say("Starting ...")
        self._worker.start()

    def _cancelled(self) -> None:
        if not self.cancel.disabled:
            self.stopping = self.cancel.disabled = True
            self.say("Stopping ...")

    def _begin(self) -> Generator[float, None, None]:
        self._drawn, self._wait = 0.0, DRAW_EVERY
        return self.work(self.settings)

    def _advance(self, done: float) -> None:
        start = perf_counter()
        if start - self._drawn < self._wait:
            return
        self.progress.value = done
        if not self.stopping:
            self.say(self.outcome()[1])
        self._redraw(live=True)
        self._drawn = perf_counter()
        self._wait = max(DRAW_EVERY, (self._drawn - start) / DRAW_SHARE)

    def _end(self, error: Exception | None) -> None:
        try:
            if error is not None:
                raise error
            word, sentence = self.outcome()
            self._redraw(live=False)  # before the sentence: nothing is drawn after it
            self._show_goal()
            if word == "done":
                self.progress.value = 1.0
            self.progress.bar_style = "success" if word == "done" else "warning"
            self.say(sentence)
        except Exception as problem:
            self._fail(problem)
        finally:
            self.run.disabled, self.cancel.disabled = False, True

    def _redraw(self, live: bool) -> None:
        for name, figure in self.draw(live).items():
            self.figures[name].show(figure, words=not live)
            if not live:
                self._words[name].value = words.in_words(describe(figure))

    def say(self, text: str) -> None:
        """Show `text` as the status."""
        self.status.value = words.status(text)

    def _fail(self, error: BaseException) -> None:
        self.error = error
        self.progress.bar_style = "danger"
        self.status.value = words.failure(error)

    def _raise(self) -> None:
        if self.error is not None:
            raise self.error

    def _show_goal(self) -> None:
        if self.goal is not None:
            self._goal.value = words.goal(self.goal.sentence, self.reached())

    def _layout(self) -> w.VBox:
        buttons = row([self.run, self.cancel, self.progress])
        parts = [self._goal] if self.goal is not None else []
        parts += [row(self.controls.values()), buttons, self.status, row(self.views.values())]
        for name, fig in self.figures.items():
            parts += [fig, self._words[name]]
        return w.VBox(parts)
