"""A worker's memory is faulted in once."""

import os
import subprocess
import sys

import pytest

FAULTS = """
import resource, sys
import torch
from pipemare_edu.trainer.heap import keep_freed

if "keep" in sys.argv:
    keep_freed()

def step():  # 64 MB in blocks that glibc would give back
    return [torch.ones(1 << 20) for _ in range(16)]

for _ in range(3):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(*arguments):
    # What glibc gives back by itself depends on what happens to lie at the end of its heap.
    done = subprocess.run(
        [sys.executable, "-c", FAULTS, *arguments], capture_output=True, text=True, check=True,
        env=os.environ | {"MALLOC_MMAP_THRESHOLD_": str(1 << 17)},
    )  # fmt: skip
    return int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_what_is_freed_is_used_again_without_a_fault():
    assert faults("keep") < 100 < faults()
