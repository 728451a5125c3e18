"""Randomness that depends on (seed, layer, microbatch) and on nothing else.

Before a layer's forward the generator is seeded with that key, so dropout masks do not change with
the stage count, the engine, a recompute, or whatever else runs in the process.  The caller's own
random state and thread count are put back whenever the trainer lets go.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_MASK = (1 << 64) - 1


def key(seed: int, layer: int, microbatch: int) -> int:
    """A 64-bit seed for one forward of one layer (splitmix64's finalizer over the three)."""
    z = (seed * 0x9E3779B97F4A7C15 + layer * 0xBF58476D1CE4E5B9 + microbatch + 1) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def generator(device: torch.device) -> torch.Generator:
    """The default generator that layers on `device` draw from."""
    if device.type == "cuda":
        torch.cuda.init()
        return torch.cuda.default_generators[device.index or 0]
    return torch.default_generator


class Sandbox:
    """Holds the caller's random state, thread count and gradient mode while the trainer computes.

    One intra-op thread inside, because the bits of a matrix product depend on the thread count.
    Reference cycles wait for the end of the chunk: looking for them costs 2 to 4 % of a step.
    """

    def __init__(self, device: torch.device) -> None:
        self._generators = {torch.default_generator, generator(device)}

    def __enter__(self) -> None:
        self._states = [(g, g.get_state()) for g in self._generators]
        self._threads, self._grad = torch.get_num_threads(), torch.is_grad_enabled()
        torch.set_grad_enabled(True)
        self._collects = gc.isenabled()
        gc.disable()
        torch.set_num_threads(1)

    def __exit__(self, *_: object) -> None:
        torch.set_num_threads(self._threads)
        torch.set_grad_enabled(self._grad)
        if self._collects:
            gc.enable()
        self._set_random(self._states)

    @contextmanager
    def outside(self) -> Iterator[None]:
        """Back in the caller's random state for a moment: a data loader shuffles with it.

        The thread count stays: changing it for every minibatch starts and stops threads.
        """
        inside = [(g, g.get_state()) for g in self._generators]
        self._set_random(self._states)
        try:
            yield
        finally:
            self._states = [(g, g.get_state()) for g in self._generators]
            self._set_random(inside)

    @staticmethod
    def _set_random(states: list[tuple[torch.Generator, torch.Tensor]]) -> None:
        for g, state in states:
            g.set_state(state)
