"""The first cell of a lesson."""

from __future__ import annotations

import pytest

from pipemare_edu import doctor as machine
from pipemare_edu.lessons import doctor


def test_says_the_same_on_every_machine_that_is_fine() -> None:
    assert doctor() == "Everything this course needs is here."


def test_details_name_profile_and_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIPEMARE_EDU_PROFILE", "binder")
    said = doctor(details=True)
    assert "profile     binder" in said and "torch" in said


def test_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "problems", lambda: ["Not installed: plotly."])
    assert doctor() == "Not installed: plotly."
