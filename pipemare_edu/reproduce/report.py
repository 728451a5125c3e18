"""The report: what was run, every task's section, how to read it; written in three forms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

from ..trainer.files import write_atomically
from .render import Block, Heading, as_csv, html_page, markdown
from .section import Section
from .study import Study, versions
from .summary import summarize

ABOUT = """What a scaled-down run can show is the order of the methods, not the paper's numbers.
"Measured" is what these runs gave, "reported" is what the paper says of its own, larger setting
(arXiv 1910.05124)."""

LEGEND = [
    "quality: after the last step, mean ± spread over the seeds; a run that diverged counts 0.",
    "staleness: of the weights that stage 1's forwards read, in steps, by version stamps.",
    "memory: weights, gradients, optimizer and extra copies over the first three, counted in the "
    "runs, each stage at its peak. T2's copy is half as much again for plain SGD, a third with "
    "momentum, a quarter for Adam. The paper's formula for PipeDream leaves out the live weights.",
    "utilization: GPipe's time per minibatch over the method's once the pipe is full, by the "
    "virtual clock: a device per stage, stages alike, messages free. The paper's model is "
    "(N+P-1)/N.",
    "time to target: modelled, over GPipe's: step ratio x T3's bill / utilization. The step ratio "
    "is the mean number of steps until an evaluation first shows the target, over GPipe's; T3's "
    "bill is what its synchronous steps add. Runs that do not reach the target, and those that "
    "diverge, are left out of the means; the column beside says how many do.",
]


def sections(study: Study, share: float) -> list[Section]:
    """What the store has of every task; share: of GPipe's quality that is the target."""
    found = [(case, study.records(case)) for case in study.cases]
    return [Section(case, records, summarize(case, records, share)) for case, records in found]


def contents(study: Study, parts: Sequence[Section], share: float) -> Iterator[Block]:
    """The report, block by block."""
    yield Heading(1, "Reproduction of the paper's comparison")
    yield ABOUT
    yield facts(study, parts)
    for part in parts:
        yield Heading(2, part.title)
        yield part.setting
        if study.preset.origins:
            yield part.origins(study.preset.origins)
        yield part.outcome()
        yield part.order
        yield part.reported
        yield part.ends()
        yield part.target(share)
        yield part.to_target()
        yield part.race()
    yield Heading(2, "How to read it")
    yield LEGEND


def facts(study: Study, parts: Sequence[Section]) -> list[str]:
    """What was run, when, and with what."""
    seconds = [r["seconds"] for part in parts for r in part.records]
    tasks = ", ".join(case.part.kind for case in study.cases)
    seeds = ", ".join(map(str, study.preset.seeds))
    program = ", ".join(f"{name} {version}" for name, version in versions().items())
    mean = sum(seconds) / max(1, len(seconds))
    return [
        f"{date.today().isoformat()}; {program}",
        f"preset {study.preset.name}: tasks {tasks}; seeds {seeds}",
        f"{len(seconds)} of {len(study.asked)} runs have ended",
        f"{sum(seconds):.0f} seconds of training, {mean:.1f} a run",
    ]


def write(study: Study, share: float) -> list[Path]:
    """Write report.md, report.csv and report.html beside the runs; returns their paths."""
    parts = sections(study, share)
    blocks = list(contents(study, parts, share))
    texts = {
        "report.md": markdown(blocks),
        "report.csv": as_csv([row for part in parts for row in part.rows]),
        "report.html": html_page(blocks, f"Reproduction of PipeMare: {study.preset.name}"),
    }
    for name, text in texts.items():
        write_atomically(study.store.path / name, text.encode())
    return [study.store.path / name for name in texts]
