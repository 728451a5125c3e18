"""What a container leaves us of its machine, from made-up machines."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipemare_edu import doctor, limits, runs
from pipemare_edu.trainer import placement

GIB = 1 << 30


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """16 cores of which we may use 8, 64 GiB, no group that limits; the folder of its cgroups."""
    for name in ("CPU_LIMIT", "MEM_LIMIT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(limits, "_MOUNTED", tmp_path)
    monkeypatch.setattr(limits, "_OURS", tmp_path / "ours")
    monkeypatch.setattr(limits.os, "cpu_count", lambda: 16)
    monkeypatch.setattr(limits.os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 16 << 20}
    monkeypatch.setattr(limits.os, "sysconf", sizes.__getitem__, raising=False)
    return tmp_path


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def test_a_machine_without_limits(machine: Path) -> None:
    assert limits.cpus() == 8 and limits.processes() == 8
    assert limits.memory() == 64 * GIB


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "max 100000\n"}, 8),
        ({"cpu/cpu.cfs_quota_us": "200000", "cpu/cpu.cfs_period_us": "100000"}, 2),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 8),
        ({"ours": "0::/a/b\n", "a/b/cpu.max": "50000 100000"}, 0.5),
        ({"ours": "0::/a/b\n", "a/cpu.max": "300000 100000", "a/b/cpu.max": "max 100000"}, 3),
        (
            {
                "ours": "4:memory:/m\n2:cpu,cpuacct:/d\n",
                "cpu/d/cpu.cfs_quota_us": "100000",
                "cpu/d/cpu.cfs_period_us": "50000",
                "cpu/m/cpu.cfs_quota_us": "1",
                "cpu/m/cpu.cfs_period_us": "50000",
            },
            2,
        ),
        ({"ours": "0::/../outside\nnonsense\n", "cpu.max": "nonsense"}, 8),
    ],
)
def test_cpus_of_a_control_group(machine: Path, files: dict[str, str], expected: float) -> None:
    write(machine, files)
    assert limits.cpus() == expected
    assert limits.processes() == max(1, int(expected))


@pytest.mark.parametrize(
    ("said", "expected"), [("1.0", 1), ("0.25", 0.25), ("lots", 4), ("nan", 4), ("99", 4)]
)
def test_cpu_limit_counts_beside_the_group(
    machine: Path, monkeypatch: pytest.MonkeyPatch, said: str, expected: float
) -> None:
    write(machine, {"cpu.max": "400000 100000"})
    monkeypatch.setenv("CPU_LIMIT", said)
    assert limits.cpus() == expected


@pytest.mark.parametrize(
    ("files", "said", "expected"),
    [
        ({"memory.max": "max\n"}, None, 64 * GIB),
        ({"memory/memory.limit_in_bytes": f"{(1 << 63) - 4096}\n"}, None, 64 * GIB),
        ({"memory.max": f"{3 * GIB}\n"}, None, 3 * GIB),
        ({"memory.max": f"{3 * GIB}\n"}, str(GIB), GIB),
        ({"memory.max": f"{3 * GIB}\n"}, str(4 * GIB), 3 * GIB),
        ({"ours": "0::/a/b\n", "a/memory.max": f"{2 * GIB}"}, None, 2 * GIB),
        ({"ours": "4:memory:/a\n", "memory/a/memory.limit_in_bytes": f"{GIB}"}, None, GIB),
        ({}, "plenty", 64 * GIB),
    ],
)
def test_memory(
    machine: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: dict[str, str],
    said: str | None,
    expected: int,
) -> None:
    write(machine, files)
    if said:
        monkeypatch.setenv("MEM_LIMIT", said)
    assert limits.memory() == expected


def test_where_the_system_says_nothing(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(limits.os, "sysconf")
    monkeypatch.delattr(limits.os, "sched_getaffinity")
    assert limits.memory() is None
    assert limits.cpus() == 16
    assert limits.processes(each=GIB) == 16


def test_as_many_processes_as_memory_holds(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEM_LIMIT", str(2 * GIB))
    assert limits.processes(each=GIB) == 2
    assert limits.processes(each=4 * GIB) == 1
    assert limits.processes(each=GIB // 100) == 8


def test_trainer_comparisons_and_doctor_keep_to_the_limits(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(machine, {"cpu.max": "250000 100000", "memory.max": str(900 << 20)})
    assert placement.here().cores == 2
    placed = placement.place("auto", "cpu", 12, 1000, placement.here())
    assert placed.workers == 2
    assert runs.jobs_here() == 2
    assert doctor.report()["cpus"] == "2.5 of 16"
    assert any("Memory is 0.9 GiB" in problem for problem in doctor.problems())
    monkeypatch.setenv("CPU_LIMIT", "1.0")
    assert placement.place("auto", "cpu", 12, 1000, placement.here()).workers == 0
    assert runs.jobs_here() == 1


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs a system with affinity")
def test_the_real_machine_has_a_core_and_memory() -> None:
    assert 0 < limits.cpus() <= len(os.sched_getaffinity(0))
    assert limits.memory()
