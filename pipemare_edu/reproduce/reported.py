"""The paper's own results (arXiv 1910.05124), to stand beside ours with the label "reported"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Value:
    """A reported number; `note` says how it is to be taken."""

    number: float | None
    note: str = ""

    def __str__(self) -> str:
        number = "" if self.number is None else f"{self.number:.1f}"
        return f"{number} ({self.note})" if number and self.note else number or self.note


@dataclass(frozen=True)
class Reported:
    """One row of the paper's table: {method: value}.

    memory  weights and optimizer over those of GPipe, as text
    """

    setting: str
    metric: str
    quality: Mapping[str, Value]
    memory: Mapping[str, str]
    utilization: str


def _row(
    setting: str, metric: str, memory: tuple[str, str], *quality: Value, utilization: str = ""
) -> Reported:
    stash, corrected = memory
    shown = ("gpipe", "pipedream", "pipemare-t1t2", "pipemare")
    return Reported(
        setting,
        metric,
        dict(zip(shown, quality, strict=True)),
        {
            "gpipe": "1.0x",
            "pipedream": stash,
            "pipemare-naive": "1.0x",
            "pipemare-t1": "1.0x",
            "pipemare-t1t2": corrected,
            "pipemare": corrected,
        },
        utilization,
    )


_FAILS = Value(0.0, "diverges")
_IMAGES, _TEXT = ("2.7x", "1.33x"), ("2.06-2.39x", "1.25x")
CIFAR10 = _row(
    "CIFAR10, ResNet-50, 107 stages", "accuracy", _IMAGES,
    Value(95.0), Value(94.8, "about, as we recall the paper"), Value(95.0),
    Value(None, "not needed"),
    utilization="14.3x, which is the model (N+P-1)/N at N = 8 and no measurement",
)  # fmt: skip
IWSLT14 = _row(
    "IWSLT14 De-En, Transformer, 93 stages", "BLEU", _TEXT,
    Value(34.5), _FAILS, Value(34.1), Value(34.5),
)  # fmt: skip
WMT17 = _row(
    "WMT17 En-De, Transformer, 91 stages", "BLEU", _TEXT,
    Value(27.5), _FAILS, Value(27.0), Value(27.8),
)  # fmt: skip

_IMAGE_NETWORKS = ("conv", "bottleneck", "resnet", "resnet50")


def row(task: str, network: str) -> Reported | None:
    """The reported row that is closest to a task (without its folder) and a network: a residual
    convolutional network's, or a translating Transformer's; None where the paper has none."""
    if task == "wmt17":
        return WMT17
    if task in ("words", "phrases", "iwslt14"):
        return IWSLT14
    return CIFAR10 if network in _IMAGE_NETWORKS else None
