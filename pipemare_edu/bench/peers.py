"""torch.distributed.pipelining on the same network and data, in worker processes of its own; and,
in the same processes, their stages alone: what these cores have to give where nothing is sent."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from multiprocessing.connection import Connection
from time import perf_counter
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import pipelining

from ..trainer.worker import LOOPBACK

SCHEDULES = {"gpipe": pipelining.ScheduleGPipe, "1f1b": pipelining.Schedule1F1B}
APART = "apart"  # no schedule: every stage computes on the batch, as if it had been sent to it


class Peers:
    """One process per stage, each with one thread; they train when they are told to."""

    def __init__(self, layers: list[nn.Module], stages: int, microbatches: int, batch: Any) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="pipemare_edu-")
        context = multiprocessing.get_context("spawn")
        self._ends: list[Connection] = []
        self._processes = []
        for rank in range(stages):
            mine, theirs = context.Pipe()
            size = len(layers) // stages
            part = nn.Sequential(*layers[rank * size : (rank + 1) * size])
            arguments = (theirs, rank, stages, self._folder.name, part, microbatches, batch)
            process = context.Process(target=_serve, args=arguments, daemon=True)
            process.start()
            self._ends.append(mine)
            self._processes.append(process)

    def seconds(self, schedule: str, steps: int) -> float:
        """Seconds a step, from the end of the first of `steps` + 1 to the end of the last, in the
        slowest process.  schedule: one of SCHEDULES, or APART."""
        for end in self._ends:
            end.send((schedule, steps))
        return max(end.recv() for end in self._ends)

    def close(self) -> None:
        """End the processes."""
        for end in self._ends:
            end.close()
        for process in self._processes:
            process.join(5)
            process.kill()
        self._folder.cleanup()


def _serve(
    orders: Connection, rank: int, stages: int, folder: str, part: nn.Module, microbatches: int,
    batch: Any,
) -> None:  # fmt: skip
    os.environ["GLOO_SOCKET_IFNAME"] = LOOPBACK
    torch.set_num_threads(1)
    store = dist.FileStore(f"{folder}/rendezvous", stages)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=stages)
    stage = pipelining.PipelineStage(part, rank, stages, torch.device("cpu"))
    optimizer = torch.optim.SGD(part.parameters(), lr=1e-3, momentum=0.9)
    made = {
        name: kind(stage, microbatches, loss_fn=nn.functional.mse_loss)
        for name, kind in SCHEDULES.items()
    }
    try:
        while True:
            name, steps = orders.recv()
            for k in range(steps + 1):
                if name == APART:
                    _step_apart(part, rank, stages, microbatches, batch)
                else:
                    _step(made[name], rank, stages, batch)
                optimizer.step()
                optimizer.zero_grad()
                if k == 0:
                    start = perf_counter()
            orders.send((perf_counter() - start) / steps)
    except EOFError:
        os._exit(0)


def _step(schedule: Any, rank: int, stages: int, batch: Any) -> None:
    if rank == 0:
        schedule.step(batch[0])
    elif rank == stages - 1:
        schedule.step(target=batch[1])
    else:
        schedule.step()


def _step_apart(part: nn.Module, rank: int, stages: int, microbatches: int, batch: Any) -> None:
    """Forward and backward of one stage; what its neighbours would send is taken from the batch,
    which is as wide as they are."""
    for x, y in zip(*(t.tensor_split(microbatches) for t in batch), strict=True):
        output = part(x.detach().requires_grad_(rank > 0))
        if rank == stages - 1:
            (nn.functional.mse_loss(output, y) / microbatches).backward()
        else:
            output.backward(y)
