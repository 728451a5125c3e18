"""Every figure of every panel, before anything has run: complete, and drawn without a complaint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import plotly
import plotly.graph_objects as go
import pytest
from axes import bare
from browser.server import new_page
from every_panel import NAMES, call

from pipemare_edu import panels
from pipemare_edu.figures import Figure, placeholder

PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
# In an element of its own, as Fig draws: one figure in place of another.
REDRAW = """async figures => {
  const plot = document.createElement("div");
  document.body.replaceChildren(plot);
  for (const { data, layout } of figures.map(JSON.parse)) await Plotly.react(plot, data, layout);
}"""


@pytest.fixture(scope="module")
def figures() -> Iterator[dict[str, Figure]]:
    made = {name: eval(call(name), {"panels": panels}) for name in NAMES}
    yield {f"{name}, {k}": f.shown for name in NAMES for k, f in made[name].figures.items()}
    for panel in made.values():
        panel.dispose()


def test_every_axis_has_its_place(figures: dict[str, Figure]) -> None:
    assert {name: bare(shown) for name, shown in figures.items() if bare(shown)} == {}


def test_plotly_knows_every_property(figures: dict[str, Figure]) -> None:
    for shown in figures.values():  # style.figure does not look
        go.Figure(shown.to_dict())


def test_plotly_does_not_complain(figures: dict[str, Figure]) -> None:
    before, problems = placeholder("What was there", 100), {}

    def heard(message: Any) -> None:
        if message.type == "error":  # it warns of colours in a list, which its reference allows
            said.append(message.text)

    with new_page() as page:
        page.on("console", heard)
        page.add_script_tag(path=str(PLOTLY))
        for name, shown in figures.items():
            said: list[str] = []
            page.evaluate(REDRAW, [before.to_json(), shown.to_json()])
            problems |= {name: said} if said else {}
    assert problems == {}
