"""CIFAR-10 from the user's own files: the folder cifar-10-batches-py of the python version.

Each file is a pickle, and a pickle can run any program.  So these are read by an unpickler that
makes plain values and numpy arrays and refuses all else.

The setting is the paper's as we recall it: 107 stages, 8 microbatches, momentum SGD whose rate
falls in steps, K a quarter of the first of them, D = 0.5, no T3.  Images are not augmented, so less
than the paper's accuracy is to be expected.  It was not run here: that takes a day of a GPU.
"""

from __future__ import annotations

import io
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from ..models.resnet import resnet
from ..trainer.registry import Fixes
from .task import Setting, Task, accuracy

TRAIN = [f"data_batch_{k}" for k in range(1, 6)]
TEST = ["test_batch"]
FILES = {"cifar10": f"a folder with {TRAIN[0]} ... {TRAIN[-1]} and {TEST[0]} (the python version)"}

MEAN = torch.tensor([0.4914, 0.4822, 0.4465])[:, None, None]  # of the training images, by colour
SPREAD = torch.tensor([0.2470, 0.2435, 0.2616])[:, None, None]

# What an array in a pickle is made with, under the names of numpy 1 and 2.
_RECONSTRUCT = np.empty(0).__reduce__()[0]
_MAKERS = {
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
}


class PlainUnpickler(pickle.Unpickler):
    """Reads numbers, text, lists, dicts and numpy arrays; UnpicklingError for anything else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("_codecs", "encode"):  # how protocol 2 writes bytes
            return _latin
        if (module, name) not in _MAKERS:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return _MAKERS[module, name]


def _latin(text: str, encoding: str) -> bytes:
    return text.encode("latin1")


def read(path: Path) -> tuple[Tensor, Tensor]:
    """(images (n, 3, 32, 32) uint8, classes (n,)) of one file.

    Raises ValueError, naming the file, if it is missing, broken, or holds something else.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}; give {FILES['cifar10']}") from None
    try:
        batch = PlainUnpickler(io.BytesIO(data), encoding="bytes").load()
        pixels, classes = np.asarray(batch[b"data"]), np.asarray(batch[b"labels"])
    except Exception as error:  # a broken pickle raises nearly anything
        what = f"{type(error).__name__}: {error}"
        raise ValueError(f"{path} is not a file of CIFAR-10's python version ({what})") from None
    wanted = pixels.ndim == 2 and pixels.shape[1] == 3072 and pixels.dtype == np.uint8
    if not wanted or classes.shape != pixels.shape[:1] or not np.isin(classes, range(10)).all():
        raise ValueError(
            f"{path} holds data {pixels.dtype} {pixels.shape} and labels {classes.shape}: wanted "
            "are rows of 3072 bytes and as many labels from 0 to 9"
        )
    return torch.tensor(pixels).view(-1, 3, 32, 32), torch.tensor(classes, dtype=torch.int64)


def load(folder: str | Path) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """((images, classes) to train on, the same to test); images (n, 3, 32, 32), standardized."""
    parts = []
    for names in (TRAIN, TEST):
        images, classes = zip(*(read(Path(folder) / name) for name in names), strict=True)
        parts.append(((torch.cat(images) / 255 - MEAN) / SPREAD, torch.cat(classes)))
    return parts[0], parts[1]


FIRST = 0.4  # of the steps are at the full rate


def sgd_in_steps(named: Any, rate: float, steps: int) -> Any:
    """SGD with momentum 0.9 and weight decay 5e-4, the rate a tenth after 40 % and after 80 %."""
    optimizer = torch.optim.SGD(named, lr=rate, momentum=0.9, weight_decay=5e-4)
    falls = [round(FIRST * steps), round(2 * FIRST * steps)]
    return optimizer, torch.optim.lr_scheduler.MultiStepLR(optimizer, falls)


def task(name: str, folder: str) -> Task:
    train, test = load(folder)
    steps = max(1, 200 * len(train[0]) // 128)
    return Task(
        name=name,
        title="CIFAR-10",
        train=train,
        test=test,
        loss=cross_entropy,
        metrics={"accuracy": accuracy},
        score="accuracy",
        settings={
            "resnet50": Setting(
                partial(resnet, 50), sgd_in_steps,
                stages=107, microbatches=8, batch=128, steps=steps, rate=0.1,
                fixes=Fixes(t1=max(1, round(FIRST * steps / 4)), t2=0.5),
                about="ResNet-50, 107 stages",
            ),
        },
        at_once=250,
    )  # fmt: skip
