"""Panel: what every panel shares.

    goal
    controls (what to run) and views (how to draw it)
    [Run] [Cancel]  progress
    status
    figures, each with its description

A panel runs nothing until Run is clicked.  In a cell: panel.run.click(); print(await panel.wait()).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ipywidgets as w
from IPython.display import display

from .. import doctor
from ..checks import unknown
from ..figures import Figure, describe
from ..figures.fig import Fig
from . import words
from .cells import Cells
from .colab import allow_widgets
from .controls import close, row, taken
from .loop import Pace, Worker
from .report import Report


@dataclass(frozen=True)
class Goal:
    """What a learner should bring about: a sentence, and a test of the panel."""

    sentence: str
    reached: Callable[[Any], bool]


class Panel(Report, ABC):
    """Subclasses give `work` and `draw`, and may give `outcome` and `reading`.

    controls  name -> widget, in the order in which they are shown; they set what Run does
    views     the same, for what only changes the drawing: each change redraws
    text      the text form: fixed, and saying what to call where widgets do not draw
    buttons   a subclass may set some before it calls this: they stand before the views

    Where drawing takes milliseconds, a subclass lets the figures `follow` controls, too.
    """

    buttons: Sequence[w.Button] = ()

    def __init__(
        self,
        controls: Mapping[str, w.Widget],
        text: str,
        goal: Goal | None = None,
        views: Mapping[str, w.Widget] | None = None,
    ) -> None:
        super().__init__()
        self.controls, self.views = dict(controls), dict(views or {})
        self.text, self.goal = text, goal
        self.run = w.Button(description="Run", button_style="primary", icon="play")
        self.cancel = w.Button(description="Cancel", disabled=True, icon="stop")
        self.figures = {name: Fig(figure) for name, figure in self.draw().items()}
        self._words = {name: w.HTML(words.in_words(f.alt)) for name, f in self.figures.items()}
        self._goal = w.HTML()
        self.stopping = False
        self._pace = Pace()
        self._worker = Worker(self._begin, self._advance, self._end)
        self.run.on_click(self.guarded(lambda _: self._clicked()))
        self.cancel.on_click(self.guarded(lambda _: self._cancelled()))
        for view in self.views.values():
            self.follow(view)
        self._show_goal()
        self.view = self._layout()
        Cells.claim(self)

    # What a subclass gives

    @abstractmethod
    def work(self, settings: dict[str, Any]) -> Generator[float, None, None]:
        """Do the work in chunks of about 50 ms; yield how much is done, from 0 to 1.

        Look at self.stopping after every chunk, and end soon when it is set.
        """

    @abstractmethod
    def draw(self, live: bool = False) -> dict[str, Figure]:
        """The figures as they are now; live=True: only those worth drawing while work goes on."""

    def outcome(self) -> tuple[str, str]:
        """A word for how the work stands (done, cancelled ...) and a sentence."""
        return ("cancelled", "Cancelled.") if self.stopping else ("done", "Done.")

    def reading(self) -> str:
        """A sentence that says what the figures show, once a control or view has changed."""
        return ""

    def value(self) -> Any:
        """What `result` returns."""
        return None

    def follow(self, widget: w.Widget, change: Callable[[], None] = lambda: None) -> None:
        """Do `change` and draw anew whenever the value of `widget` has changed, on the thread that
        runs cells: for what is drawn fast enough to follow a slider (under 50 ms)."""
        followed = self.guarded(lambda: self._followed(change))
        widget.observe(lambda _: self._worker.call(followed), "value")

    # What a learner, a cell or a test calls

    @property
    def settings(self) -> dict[str, Any]:
        """The values of the controls."""
        return {name: control.value for name, control in self.controls.items()}

    def set(self, **values: Any) -> None:
        """Set controls by name, one after the other.  ValueError for a name that is not there, and
        for a value at which that control cannot stand."""
        for name, value in values.items():
            if name not in self.controls:
                raise ValueError(unknown("control", name, self.controls))
            self.controls[name].value = taken(name, self.controls[name], value)

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

    def __repr__(self) -> str:
        return self.text

    def _ipython_display_(self) -> None:
        """Where widgets may not draw, the plain call's sentence stands above the panel."""
        if not doctor.may_not_draw():
            raise NotImplementedError  # IPython goes on to the next method
        allow_widgets()
        display({"text/plain": self.text.splitlines()[-1]}, raw=True)
        display(self._repr_mimebundle_(), raw=True)

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
        self._pace = Pace()
        return self.work(self.settings)

    def _advance(self, done: float) -> None:
        self._pace.draw(lambda: self._show_progress(done))

    def _show_progress(self, done: float) -> None:
        self.progress.value = done
        if not self.stopping:
            self.say(self.outcome()[1])
        self._redraw(live=True)

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

    def _followed(self, change: Callable[[], None]) -> None:
        change()
        self._redraw(live=False)
        self._show_goal()
        if (sentence := self.reading()) and not self.busy:
            self.error = None  # of an entry that has been put right
            self.say(sentence)

    def _redraw(self, live: bool) -> None:
        for name, figure in self.draw(live).items():
            self.figures[name].show(figure, words=not live)
            if not live:
                self._words[name].value = words.in_words(describe(figure))

    def _show_goal(self) -> None:
        if self.goal is not None:
            self._goal.value = words.goal(self.goal.sentence, self.reached())

    def _layout(self) -> w.VBox:
        buttons = row([self.run, self.cancel, self.progress])
        parts = [self._goal] if self.goal is not None else []
        parts += [
            row(self.controls.values()),
            buttons,
            self.status,
            row([*self.buttons, *self.views.values()]),
        ]
        for name, fig in self.figures.items():
            parts += [fig, self._words[name]]
        return w.VBox(parts)
