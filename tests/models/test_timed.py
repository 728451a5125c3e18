"""Layers that take as long as they are told to."""

from __future__ import annotations

from time import perf_counter

import torch

from pipemare_edu.models.timed import WIDTH, multiply, timed


def test_the_extra_work_changes_no_number():
    layer = timed([3.0], [5.0])[0]
    x = torch.randn(4, WIDTH, requires_grad=True)
    layer(x).pow(2).sum().backward()
    grads = x.grad, layer.linear.weight.grad, layer.linear.bias.grad
    plain = x.detach().requires_grad_()
    layer.zero_grad()
    layer.linear(plain).pow(2).sum().backward()
    for ours, theirs in zip(
        grads, (plain.grad, layer.linear.weight.grad, layer.linear.bias.grad), strict=True
    ):
        assert torch.equal(ours, theirs)


def test_as_many_products_as_were_asked_for(monkeypatch):
    done = []
    monkeypatch.setattr("pipemare_edu.models.timed.multiply", lambda _, times: done.append(times))
    for layer in timed([1.0, 2.0], [3.0, 0.5]):
        layer(torch.zeros(1, WIDTH)).sum().backward()
    assert done == [8, 24, 16, 4]


def test_ten_times_the_products_take_longer():
    square = torch.eye(128)

    def seconds(times):
        start = perf_counter()
        multiply(square, times)
        return perf_counter() - start

    seconds(10)
    assert min(seconds(100) for _ in range(5)) > 3 * min(seconds(10) for _ in range(5))
