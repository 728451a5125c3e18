"""python -m pipemare_edu reproduce"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..runs import Record
    from .study import Study

BAR = "{percentage:3.0f}%|{bar}| {n:.1f} of {total} runs [{elapsed}, {remaining} left{postfix}]"


def add(commands: Any, count: Callable[[str], int]) -> None:
    """Add the command to argparse's `commands`; `count` reads a whole number."""
    command = commands.add_parser(
        "reproduce", help="the paper's methods on several tasks, with a report"
    )
    command.add_argument(
        "--preset",
        default="quick",
        help="quick (words and shapes, 3 seeds), full (also phrases and digits, 5 seeds), or "
        "paper-cifar10, paper-iwslt14, paper-wmt17 for your own files (quick)",
    )
    command.add_argument(
        "--task", dest="tasks", action="extend", nargs="+", default=[], metavar="TASK",
        help="these tasks in place of the preset's; cifar10:FOLDER and the like read your files",
    )  # fmt: skip
    command.add_argument(
        "--seeds", type=_seeds, help="how many, from 10 on, or which: 10,11 (the preset's)"
    )
    command.add_argument("--steps", type=count, help="of every run (each task's own)")
    command.add_argument("--jobs", type=count, help="runs side by side (the preset's)")
    command.add_argument("--device", default="auto", help="auto, cpu or cuda")
    command.add_argument(
        "--share", type=_share, help="of GPipe's quality that is the target of time (0.95)"
    )
    command.add_argument(
        "--out", metavar="FOLDER", help="finished runs and the report (reproduce-PRESET)"
    )
    command.add_argument("--json", action="store_true", help="end with one JSON line")


def _seeds(text: str) -> int | list[int]:
    words = [word for word in text.split(",") if word]
    if not words or not all(word.isdecimal() for word in words) or text == "0":
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor a list: 3, or 10,11")
    if len(set(words)) < len(words):
        raise argparse.ArgumentTypeError(f"{text!r} names a seed twice")
    return list(map(int, words)) if "," in text else int(text)


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share above 0, 1 at most")
    return value


def reproduce(args: argparse.Namespace) -> list[Record]:
    """Run what is missing, write the report, and return the records that there are."""
    from ..compare import table
    from .report import write
    from .summary import TARGET

    study, jobs = _study(args)
    running = study.run(jobs)
    if left := len(study.missing()):
        print(
            f"preset {study.preset.name}: {left} runs to do, {jobs} at a time; quick takes over "
            "ten minutes, and the bar says what is left. Ctrl-C keeps the runs that have ended, "
            "and the same command goes on",
            file=sys.stderr,
        )
    try:
        _carry_out(study, running)
    except KeyboardInterrupt:
        pass
    finally:  # an error too leaves the report of what there is
        files = write(study, args.share or TARGET)
    if missing := len(study.missing()):
        done = len(study.asked) - missing
        print(f"interrupted: {done} of {len(study.asked)} runs are kept; the same command goes on")
    for case in study.cases:
        if records := study.records(case):
            print(f"{case.part.kind}\n{table(records, case.part.task)}")
    print("report: " + ", ".join(map(str, files)))
    return [{"task": c.part.task, **r} for c in study.cases for r in study.records(c)]


def _study(args: argparse.Namespace) -> tuple[Study, int]:
    from ..runs import jobs_here
    from .presets import choose, seeds_from
    from .study import Study

    tasks = [t for text in args.tasks for t in ([text] if ":" in text else text.split(",")) if t]
    seeds = seeds_from(args.seeds) if isinstance(args.seeds, int) else args.seeds or ()
    preset = choose(args.preset, tasks, seeds)
    study = Study(preset, args.out or f"reproduce-{preset.name}", args.steps, args.device)
    return study, args.jobs or preset.jobs or jobs_here()


def _carry_out(study: Study, running: Any) -> None:
    """Run to the end, under a bar with the time that is left."""
    from tqdm import tqdm

    total = len(study.asked)
    kept = total - len(study.missing())
    with tqdm(
        total=total, initial=kept, smoothing=0, bar_format=BAR, leave=False, file=sys.stderr
    ) as bar:
        for done, record in running:
            if record is not None:
                bar.set_postfix_str(
                    f"{record['method']} seed {record['seed']}: {record['status']}", refresh=False
                )
            bar.update(kept + done - bar.n)
