"""The outlines: drawn alike on every machine, told apart by shape alone."""

import pytest
import torch

from pipemare_edu import tasks
from pipemare_edu.models.search import through
from pipemare_edu.tasks import shapes


@pytest.fixture(scope="module")
def data():
    return shapes.load()


def test_data_are_deterministic_and_leave_the_global_state_alone():
    first = shapes.load(samples=50)
    torch.manual_seed(99)
    state = torch.get_rng_state()
    assert all(torch.equal(a, b) for a, b in zip(first, shapes.load(samples=50), strict=True))
    assert torch.equal(torch.get_rng_state(), state)


def test_classes_are_equally_many_and_images_about_standardized(data):
    images, classes = data
    assert images.shape == (5000, 3, 16, 16) and images.dtype == torch.float32
    assert classes.bincount().tolist() == [500] * 10
    assert abs(images.mean().item()) < 0.6 and 0.5 < images.std().item() < 1.2


def test_train_and_test_are_disjoint_and_cover_the_data():
    task = tasks.get("shapes")
    train, test = ({x.numpy().tobytes() for x in part[0]} for part in (task.train, task.test))
    assert (len(train), len(test)) == (4000, 1000)
    assert not train & test


GRID = torch.linspace(-1.2, 1.2, 97)
X, Y = GRID[None, :].expand(97, 97), GRID[:, None].expand(97, 97)


@pytest.mark.parametrize("outline", shapes.OUTLINES)
def test_every_outline_has_an_inside_and_an_outside_within_the_image(outline):
    inside = outline(X, Y) < 0
    assert 0.05 < inside.float().mean() < 0.6
    border = torch.cat([inside[0], inside[-1], inside[:, 0], inside[:, -1]])
    assert not border.any()


def test_no_two_outlines_cover_the_same_points():
    masks = [outline(X, Y) < 0 for outline in shapes.OUTLINES]
    for j, a in enumerate(masks):
        for b in masks[:j]:
            assert (a ^ b).float().mean() > 0.03


def test_known_points_of_outlines():
    def inside(outline, x, y):
        return bool(outline(torch.tensor(x), torch.tensor(y)) < 0)

    assert inside(shapes.disc, 0.0, 0.0) and not inside(shapes.ring, 0.0, 0.0)
    assert inside(shapes.plus, 0.9, 0.0) and not inside(shapes.plus, 0.6, 0.6)
    assert inside(shapes.cross, 0.6, 0.6) and not inside(shapes.cross, 0.9, 0.0)
    assert inside(shapes.columns, 0.6, 0.0) and not inside(shapes.rows, 0.6, 0.0)
    assert inside(shapes.crescent, -0.8, 0.0) and not inside(shapes.crescent, 0.5, 0.0)


def test_colour_says_nothing_about_the_class(data):
    """The nearest class mean of an image's average colour is right by chance alone."""
    images, classes = data
    colour = images.mean((2, 3))
    colour = colour / colour.norm(dim=1, keepdim=True)
    means = torch.stack([colour[:4000][classes[:4000] == k].mean(0) for k in range(10)])
    guess = torch.cdist(colour[4000:], means).argmin(1)
    assert (guess == classes[4000:]).float().mean() < 0.2


def test_the_network_halves_at_the_stem_and_twice_more():
    layers = shapes.network()
    assert len(layers) == 45 and layers[0].stride == (2, 2)
    before_head = through(layers[:-1], torch.zeros(2, 3, 16, 16))
    assert before_head.shape == (2, 32, 2, 2)
