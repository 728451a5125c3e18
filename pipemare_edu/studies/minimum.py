"""Small networks at the very bottom of their loss.

The task: of 50 images of digits, which are odd?  Targets are +1 and -1, the loss is the mean square
error.  Every network here has more weights than samples, so it can reach a loss of zero; all is in
double precision, so that a small push can grow or shrink by many orders of magnitude.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from .. import tasks
from ..checks import unknown
from ..models.mlp import mlp, residual_mlp
from ..tasks.task import take
from ..trainer.threads import one_thread

SAMPLES = 50
ROUGH, CHUNK, POLISH = 400, 20, 12  # steps of L-BFGS, in chunks, and of Gauss-Newton at most
Batch = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Network:
    """What it is, and how its layers are built (from torch's random state); a stage a layer."""

    about: str
    build: Callable[[], list[nn.Module]]


def tanh_mlp(inputs: int, width: int, outputs: int, depth: int) -> list[nn.Module]:
    """`depth` layers: Linear and Tanh, and a Linear at the end."""
    widths = [inputs, *[width] * (depth - 1)]
    pairs = zip(widths[:-1], widths[1:], strict=True)
    return [
        *(nn.Sequential(nn.Linear(a, b), nn.Tanh()) for a, b in pairs),
        nn.Linear(width, outputs),
    ]


NETWORKS = {
    "batchnorm": Network("4 x (Linear 16, BatchNorm, ReLU)", lambda: mlp(64, 16, 1, 4)),
    "deep": Network("8 x (Linear 32, BatchNorm, ReLU)", lambda: mlp(64, 32, 1, 8)),
    "tanh": Network("6 x (Linear 16, tanh)", lambda: tanh_mlp(64, 16, 1, 6)),
    "residual": Network("6-layer residual MLP, LayerNorm", lambda: residual_mlp(64, 16, 1, 6)),
}


def forward(layers: Sequence[nn.Module], inputs: Tensor) -> Tensor:
    """The layers, one after the other."""
    for layer in layers:
        inputs = layer(inputs)
    return inputs


def parameters(layers: Sequence[nn.Module]) -> list[nn.Parameter]:
    """Of all layers, in order."""
    return [p for layer in layers for p in layer.parameters()]


def batch(seed: int) -> Batch:
    """(images (50, 64), targets (50, 1)), another 50 for each seed."""
    digits = tasks.get("digits")
    order = torch.randperm(digits.samples, generator=torch.Generator().manual_seed(seed))
    images, classes = take(digits.train, order[:SAMPLES])
    return images.double(), (classes % 2 * 2.0 - 1.0).double()[:, None]


def initial(network: str, seed: int) -> list[nn.Module]:
    """The layers as PyTorch initializes them; ValueError with the closest name for another."""
    if network not in NETWORKS:
        raise ValueError(unknown("network", network, NETWORKS))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return [layer.double() for layer in NETWORKS[network].build()]


@dataclass(eq=False)
class Descent:
    """The way of a network to the bottom of its loss on batch(seed), in chunks, resumable.

    L-BFGS leads into the valley, Gauss-Newton steps to its floor, where only rounding is left.
    """

    layers: list[nn.Module]
    data: Batch

    def __post_init__(self) -> None:
        self._chunks = self._descend()

    def __iter__(self) -> Iterator[float]:
        """The loss after each of the chunks that are left."""
        return self._chunks

    def _descend(self) -> Iterator[float]:
        optimizer = torch.optim.LBFGS(
            parameters(self.layers), max_iter=CHUNK, history_size=20, tolerance_change=0.0,
            line_search_fn="strong_wolfe",
        )  # fmt: skip

        def loss() -> Tensor:
            optimizer.zero_grad()
            value = mse_loss(forward(self.layers, self.data[0]), self.data[1])
            value.backward()
            return value

        for _ in range(ROUGH // CHUNK):
            with one_thread():
                value = optimizer.step(loss).item()
            yield value
        optimizer.zero_grad()
        for _ in range(POLISH):
            errors = _to_where_linear_errors_vanish(self.layers, self.data)
            yield float(errors.square().mean())
            if errors.abs().max() < 1e-13:
                return


@lru_cache(maxsize=32)
def descent(network: str, seed: int) -> Descent:
    """The one descent of this network and seed."""
    return Descent(initial(network, seed), batch(seed))


def minimum(network: str, seed: int) -> list[nn.Module]:
    """The layers at the bottom, carrying the descent to its end first.  Copy before use."""
    way = descent(network, seed)
    for _ in way:
        pass
    return way.layers


def copied(layers: Sequence[nn.Module]) -> list[nn.Module]:
    """Layers of their own, with the same weights."""
    return [copy.deepcopy(layer) for layer in layers]


@one_thread()
def jacobian(layers: Sequence[nn.Module], data: Batch) -> tuple[Tensor, list[Tensor]]:
    """(errors (samples,), for each parameter the errors' derivatives (samples, numbers in it))."""
    errors = (forward(layers, data[0]) - data[1]).flatten()
    each = torch.eye(len(errors), dtype=errors.dtype)
    rows = torch.autograd.grad(errors, parameters(layers), each, is_grads_batched=True)
    return errors.detach(), [row.flatten(1) for row in rows]


@one_thread()
def _to_where_linear_errors_vanish(layers: Sequence[nn.Module], data: Batch) -> Tensor:
    """Take the shortest step to where the linearized network has no error; returns the errors
    before it."""
    errors, rows = jacobian(layers, data)
    matrix = torch.cat(rows, dim=1)
    solved = torch.linalg.lstsq(
        matrix @ matrix.T, -errors[:, None], rcond=1e-13, driver="gelsd"
    ).solution
    weights = parameters(layers)
    moved = parameters_to_vector(weights).detach() + (matrix.T @ solved)[:, 0]
    vector_to_parameters(moved, weights)
    return errors
