"""A panel where widgets may not draw: it is shown, under a sentence that says how to do without."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from pipemare_edu import doctor, panels
from pipemare_edu.panels import base

VIEW = "application/vnd.jupyter.widget-view+json"
SENTENCE = "Without widgets, roots(rate=0.25, tau=4, momentum=0.0) gives the same figure."
OUTSIDE = {name for names in doctor._NOTEBOOKS.values() for name in names}


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What a panel displays by itself."""
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(base, "display", lambda data, raw: seen.append(data))
    import ipykernel  # noqa: F401  # by which a notebook is known

    for name in OUTSIDE:
        monkeypatch.delenv(name, raising=False)
    return seen


def formatted(panel: panels.Panel) -> dict[str, Any]:
    """What IPython's display hook gets for a panel that ends a cell; empty if it showed itself."""
    return InteractiveShell().display_formatter.format(panel)[0]


def test_in_jupyterlab_a_panel_is_the_cells_result(
    shown: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JPY_SESSION_NAME", "a.ipynb")
    data = formatted(panels.Roots(rate=0.25, tau=4))
    assert VIEW in data and data["text/plain"].endswith(SENTENCE)
    assert shown == []


def test_in_vs_code_a_sentence_stands_above_it(
    shown: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VSCODE_PID", "7")
    assert formatted(panels.Roots(rate=0.25, tau=4)) == {}
    sentence, view = shown
    assert sentence == {"text/plain": SENTENCE}
    assert VIEW in view and view["text/plain"].endswith(SENTENCE)


def test_on_colab_other_peoples_widgets_are_asked_for_as_well(
    shown: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    colab, output, asked = ModuleType("google.colab"), ModuleType("google.colab.output"), []
    output.enable_custom_widget_manager = lambda: asked.append(True)
    colab.output = output
    monkeypatch.setitem(sys.modules, "google.colab", colab)
    assert formatted(panels.Roots(rate=0.25, tau=4)) == {}
    assert asked == [True] and shown[0] == {"text/plain": SENTENCE}


def test_every_sentence_names_a_plain_call_that_is_there() -> None:
    for name in panels.__all__:
        made = getattr(panels, name)
        if isinstance(made, type) and issubclass(made, panels.Panel) and made is not panels.Panel:
            call = made().text.splitlines()[-1].partition("Without widgets, ")[2].partition("(")[0]
            assert callable(getattr(panels, call)), name
