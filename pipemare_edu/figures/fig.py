"""Fig: a figure that can be redrawn while it is on a page.

Plotly's own FigureWidget brings 5 MB of JavaScript for every figure, answers each change with all
of its defaults, and shows a viewer that comes later (a reload, a second view) the figure as it was
first made.  Here the figure is one synchronized value: late viewers see the last one, and plotly.js
travels once, in a widget without a view.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import anywidget
import ipywidgets as w
import plotly
import plotly.graph_objects as go
import traitlets

from .style import describe

HERE = Path(__file__).parent


class PlotlyBundle(anywidget.AnyWidget):
    """plotly.js, sent to a page once, for all its figures."""

    source = traitlets.Unicode().tag(sync=True)
    _esm = """
    export default {
      initialize({ model }) {
        globalThis.__pipemare_plotly ??= (async () => {
          const code = new Blob([model.get("source")], { type: "text/javascript" });
          await import(URL.createObjectURL(code));
          return globalThis.Plotly;
        })();
      },
      render() {},
    };
    """


class State(w.Widget):
    """What a figure shows at present.

    A model of ipywidgets' own, without code.  To one with code anywidget passes on no message ever
    again if the code took more than two seconds to arrive, as on a busy page it may.
    """

    spec = traitlets.Unicode().tag(sync=True)
    alt = traitlets.Unicode().tag(sync=True)
    takes = traitlets.Unicode().tag(sync=True)


class Fig(anywidget.AnyWidget):
    """A live figure.  `show(figure)` draws a Plotly figure in place of the last one.

    shown  the figure that is shown, as a value
    alt    its description, which a screen reader reads
    takes  names of keys that it takes while it has the focus, a space between them; they go to
           `on_input`.  Without any it cannot have the focus
    """

    state = traitlets.Instance(State).tag(sync=True, **w.widget_serialization)
    _esm = HERE / "fig.js"
    _css = HERE / "fig.css"
    _bundle: ClassVar[PlotlyBundle | None] = None

    def __init__(self, shown: go.Figure, **options: Any) -> None:
        self._share_bundle()
        self.shown = shown
        state = State(spec=shown.to_json(), alt=describe(shown))
        super().__init__(state=state, **options)

    @property
    def alt(self) -> str:
        return self.state.alt

    @property
    def takes(self) -> str:
        return self.state.takes

    def show(self, shown: go.Figure, words: bool = True) -> None:
        """Draw `shown`.  words=False leaves the description as it is: a screen reader should not
        hear a new one ten times a second."""
        self.shown = shown
        self.state.spec = shown.to_json()
        if words:
            self.state.alt = describe(shown)

    def on_input(
        self, takes: str, key: Callable[[str], None], click: Callable[[str], None]
    ) -> None:
        """Take keys (see above), and call `key` with the name of one that was pressed, and `click`
        with the id of a point (a trace's `ids`) that was clicked.  They may be called from any
        thread."""
        self.state.takes = takes

        def received(_: Any, content: Any, __: Any) -> None:
            if "click" in content:
                click(content["click"])
            elif content.get("key") in takes.split():
                key(content["key"])

        self.on_msg(received)

    def close(self) -> None:
        self.state.close()
        super().close()

    @classmethod
    def _share_bundle(cls) -> None:
        if Fig._bundle is None or Fig._bundle.comm is None:  # none yet, or closed by close_all
            path = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
            Fig._bundle = PlotlyBundle(source=path.read_text(encoding="utf-8"))

    def __repr__(self) -> str:
        return self.alt
