"""CIFAR-10's python batches: the user's files are read, broken or foreign ones are refused."""

import os
import pickle

import numpy as np
import pytest
import torch

import pipemare_edu as pm
from pipemare_edu import tasks
from pipemare_edu.tasks import cifar10

NAMES = [*cifar10.TRAIN, *cifar10.TEST]


def batch(seed, rows=4, **other):
    """As the files hold it: pixels by colour, row and column, under keys that are bytes."""
    pixels = np.random.RandomState(seed).randint(0, 256, (rows, 3072)).astype(np.uint8)
    labels = [int(k) for k in np.arange(rows) % 10]
    values = {b"data": pixels, b"labels": labels, b"batch_label": b"one", b"filenames": [b"a.png"]}
    return values | {key.encode(): value for key, value in other.items()}


def write(path, values, protocol=2):
    path.write_bytes(pickle.dumps(values, protocol))


@pytest.fixture
def folder(tmp_path):
    for k, name in enumerate(NAMES):
        write(tmp_path / name, batch(k))
    return tmp_path


@pytest.mark.parametrize("protocol", [2, 4])
def test_images_and_classes_are_those_of_the_file(tmp_path, protocol):
    values = batch(7)
    write(tmp_path / "data_batch_1", values, protocol)
    images, classes = cifar10.read(tmp_path / "data_batch_1")
    assert images.dtype == torch.uint8 and images.shape == (4, 3, 32, 32)
    assert images[2, 1, 3, 5] == values[b"data"][2, 1024 + 3 * 32 + 5]
    assert classes.tolist() == values[b"labels"]


def test_names_of_numpy_1_are_read(tmp_path):
    old = pickle.dumps(batch(7), 2).replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
    (tmp_path / "data_batch_1").write_bytes(old)
    assert torch.equal(
        cifar10.read(tmp_path / "data_batch_1")[0].flatten(1),
        torch.tensor(batch(7)[b"data"]),
    )


def test_the_five_train_and_the_sixth_tests(folder):
    (x, y), (held, z) = cifar10.load(folder)
    assert x.shape == (20, 3, 32, 32) and held.shape == (4, 3, 32, 32)
    assert (len(y), len(z)) == (20, 4)
    raw = torch.tensor(batch(5)[b"data"]).view(4, 3, 32, 32) / 255
    torch.testing.assert_close(held * cifar10.SPREAD + cifar10.MEAN, raw)


def test_a_task_by_name_and_folder_trains(folder):
    name = f"cifar10:{folder}"
    run = pm.train(name, method="gpipe", stages=2, microbatches=1, batch=2, steps=1)
    assert run.status == "done" and tasks.get(name).samples == 20


def test_the_rate_falls_in_steps_and_t1_takes_a_quarter_of_the_first(folder):
    setting = tasks.get(f"cifar10:{folder}").setting()
    optimizer, scheduler = setting.optimizer([torch.zeros(1, requires_grad=True)], 0.1, 100)
    rates = []
    for _ in range(100):
        rates.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    assert rates == pytest.approx([0.1] * 40 + [0.01] * 40 + [0.001] * 20)
    assert setting.fixes.t1 == round(setting.steps / 10) and optimizer.defaults["momentum"] == 0.9


def test_a_missing_file_is_named(folder):
    (folder / "data_batch_3").unlink()
    with pytest.raises(ValueError, match="data_batch_3: No such file.*data_batch_1 ... data_"):
        cifar10.load(folder)


def test_no_folder_is_refused_with_what_it_should_hold():
    with pytest.raises(ValueError, match="cifar10:FOLDER, a folder with data_batch_1"):
        tasks.get("cifar10")


class Harm:
    def __reduce__(self):
        return os.mkdir, ("harmed",)


BROKEN = {
    "empty": (b"", "EOFError"),
    "text": (b"hello", "not a file of CIFAR-10"),
    "cut off": (pickle.dumps(batch(0), 2)[:5000], "not a file of CIFAR-10"),
    "no labels": (pickle.dumps({b"data": batch(0)[b"data"]}, 2), "KeyError: b'labels'"),
    "a list": (pickle.dumps([1, 2], 2), "not a file of CIFAR-10"),
    "too few labels": (pickle.dumps(batch(0, labels=[1]), 2), r"labels \(1,\).*0 to 9"),
    "label 10": (pickle.dumps(batch(0, labels=[1, 2, 3, 10]), 2), "0 to 9"),
    "floats": (pickle.dumps(batch(0, data=np.zeros((4, 3072))), 2), "float64.*3072 bytes"),
    "small images": (pickle.dumps(batch(0, data=np.zeros((4, 9), np.uint8)), 2), "3072 bytes"),
}


@pytest.mark.parametrize(("content", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_named(folder, content, message):
    (folder / "test_batch").write_bytes(content)
    with pytest.raises(ValueError, match=f"test_batch.*{message}"):
        cifar10.load(folder)


@pytest.mark.parametrize(
    "value", [Harm(), {b"data": Harm()}, {b"data": os.getcwd}], ids=["call", "inside", "name"]
)
def test_a_pickle_that_would_run_something_runs_nothing(folder, value, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    write(folder / "data_batch_2", value)
    with pytest.raises(ValueError, match=r"data_batch_2.*asks for posix|data_batch_2.*asks for nt"):
        cifar10.load(folder)
    assert not (tmp_path / "harmed").exists()
