"""Profiles: which one is chosen, and that it knows every run."""

from __future__ import annotations

import pytest

from pipemare_edu.lessons.profiles import NAMES, STEPS, detect, profile


@pytest.mark.parametrize(
    ("env", "gpu", "expected"),
    [
        ({"CI": "true"}, True, "ci"),
        ({"CI": "false"}, False, "laptop"),
        ({"BINDER_SERVICE_HOST": "10.0.0.1"}, True, "binder"),
        ({"CI": "1", "BINDER_REPO_URL": "x"}, False, "ci"),
        ({}, True, "gpu"),
        ({}, False, "laptop"),
    ],
)
def test_detected(env: dict[str, str], gpu: bool, expected: str) -> None:
    assert detect(env, lambda: gpu) == expected


def test_chosen_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIPEMARE_EDU_PROFILE", "binder")
    assert profile().name == "binder"
    assert profile("ci").name == "ci"


def test_unknown_profile_and_run_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIPEMARE_EDU_PROFILE", "labtop")
    with pytest.raises(ValueError, match="did you mean 'laptop'"):
        profile()
    with pytest.raises(ValueError, match="unknown run '00.frist'"):
        profile("ci").steps("00.frist")


def test_ci_is_never_the_longest() -> None:
    for run, counts in STEPS.items():
        assert len(counts) == len(NAMES), run
        assert counts[0] == min(counts), run
