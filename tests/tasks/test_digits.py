"""The digits: the data, and the assertions of SETTINGS.md (a) that are safe to make."""

import subprocess
import sys

import pytest
import torch
from sklearn.datasets import load_digits

import pipemare_edu as pm
from pipemare_edu.tasks import digits


def test_data_are_deterministic():
    for first, second in zip(digits.load(), digits.load(), strict=True):
        assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_the_file_is_what_scikit_learn_reads_and_is_read_without_it():
    for mine, theirs in zip(digits.shipped(), load_digits(return_X_y=True), strict=True):
        assert mine.dtype == theirs.dtype and (mine == theirs).all()
    code = "import sys; from pipemare_edu.tasks import digits as d; d.load()"
    code += "; sys.exit('sklearn' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_train_and_test_share_no_image_and_hold_all_1797():
    train, test = ({tuple(row) for row in x.tolist()} for x, _ in digits.load())
    assert (len(train), len(test)) == (1300, 497)
    assert not train & test


def test_images_are_about_standardized_and_every_class_is_there():
    (x, y), (_, held) = digits.load()
    assert x.shape == (1300, 64) and x.dtype == torch.float32
    assert abs(x.mean().item()) < 0.05 and abs(x.std().item() - 1) < 0.05
    assert set(y.tolist()) == set(held.tolist()) == set(range(10))


@pytest.mark.parametrize("net, channels", [(digits.conv_net, 16), (digits.bottleneck_net, 8)])
def test_convolutional_nets_fold_the_flat_images(net, channels):
    first = net()[0]
    (x, _), _ = digits.load()
    assert first(x[:2]).shape == (2, channels, 8, 8)
    torch.testing.assert_close(first[0](x[:1]).flatten(1), x[:1])


def final(method, seed):
    run = pm.train("digits", method=method, network="mlp", seed=seed, eval_every=1600)
    assert run.status == "done", run.diverged
    return run.metrics["accuracy"][-1][1]


@pytest.mark.parametrize("seed", [0, 1])
def test_the_story_of_the_mlp(seed):
    """Synchronous training works, plain asynchrony diverges, T1 with T2 comes back."""
    assert pm.train("digits", method="pipemare-naive", network="mlp", seed=seed).diverged
    assert final("gpipe", seed) > 97.5
    assert final("pipemare-t1t2", seed) > 96.5
