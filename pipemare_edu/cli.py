"""python -m pipemare_edu train | compare | reproduce | bench | grade | doctor | lessons | lab"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from . import __version__
from .ctrl_c import undisturbed
from .errors import PipelineError
from .reproduce import command as reproduction

if TYPE_CHECKING:
    from .trainer.run import Run


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status: 0, 1 for a run that failed, or 2 for input that
    cannot work."""
    try:
        with undisturbed():
            args, rest = parser().parse_known_args(argv)
            if rest and args.command not in ("grade", "lab"):
                parser().error(f"unrecognized arguments: {' '.join(rest)}")
            if args.command in ("train", "compare", "reproduce", "bench"):
                from . import compare, runs  # noqa: F401  (torch, and nearly all of the package)
        return COMMANDS[args.command](args, rest)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except PipelineError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        if "TORCHELASTIC_RUN_ID" in os.environ:
            os._exit(1)  # the network's threads would turn a normal exit into a crash
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 0
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


class Parser(argparse.ArgumentParser):
    """argparse with the one-line errors of the rest of the command."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {message} (--help lists what there is)\n")


def parser() -> argparse.ArgumentParser:
    top = Parser(prog="pipemare-edu", description=__doc__)
    top.add_argument("--version", action="version", version=__version__)
    commands = top.add_subparsers(dest="command", required=True)
    one = commands.add_parser("train", help="train a task with one method")
    _add_training(one)
    one.add_argument("--method", default="pipemare", help="a method's name")
    one.add_argument("--seed", type=int, default=0)
    one.add_argument("--save", metavar="FILE", help="write the run as JSON")
    one.add_argument("--trace", metavar="FILE", help="write the trace for Perfetto")
    _add_engine(one)
    many = commands.add_parser("compare", help="all methods over seeds, in a table")
    _add_training(many)
    many.add_argument("--methods", type=_words, help="names, comma-separated (all of them)")
    many.add_argument("--seeds", type=_count, default=3, help="seeds 0, 1, ... (3)")
    many.add_argument("--jobs", type=_count, help="runs side by side (as many as cores)")
    bench = commands.add_parser("bench", help="measure what the engines cost")
    bench.add_argument("what", choices=["engine", "pipeline", "startup", "imports", "gpu"])
    bench.add_argument("--rounds", type=_count, default=9, help="alternated rounds (9)")
    bench.add_argument("--json", action="store_true", help="end with one JSON line")
    reproduction.add(commands, _count)
    commands.add_parser("grade", help="run saved notebooks: a CSV of verdicts", add_help=False)
    commands.add_parser("doctor", help="what this machine has, and what works on it")
    copy = commands.add_parser("lessons", help="a copy of the lessons, up to date; yours stay")
    copy.add_argument("folder", nargs="?", help="where it is (./pipemare_lessons)")
    copy.add_argument(
        "--reset", metavar="LESSON", action="append", default=[], help="number or file"
    )
    commands.add_parser("lab", help="open the lessons in JupyterLab", add_help=False)
    return top


TASKS = (
    "digits, words, phrases, shapes, characters, regression; with your own files cifar10:FOLDER, "
    "iwslt14:FOLDER, wmt17:FOLDER"
)


def _add_training(command: argparse.ArgumentParser) -> None:
    command.add_argument("task", help=TASKS)
    command.add_argument("--network", help="one of the task's networks")
    command.add_argument("--stages", type=_counts, help="how many, or layer counts: 3,3,6")
    command.add_argument("--microbatches", type=_count)
    command.add_argument("--steps", type=_count)
    command.add_argument("--batch", type=_count)
    command.add_argument("--rate", type=float, help="peak learning rate")
    command.add_argument("--eval-every", type=_count, metavar="STEPS")
    command.add_argument(
        "--depth", help="of asynchronous methods: lockstep, async-1f1b, or depths: 5,3,1,0"
    )
    command.add_argument("--json", action="store_true", help="end with one JSON line")


def _add_engine(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--workers",
        type=_workers,
        help='worker processes: 0, a number or "auto"; under torchrun its ranks are taken',
    )
    command.add_argument("--device", default="auto", help="auto, cpu or cuda")
    command.add_argument(
        "--timeout",
        type=float,
        default=60,
        metavar="SECONDS",
        help="of a worker's silence (60); while workers start, 60 at least",
    )
    command.add_argument(
        "--save-every", type=_count, default=0, metavar="STEPS", help="drain and write --checkpoint"
    )
    command.add_argument("--checkpoint", default="", metavar="FILE", help='"{step}" is replaced')
    command.add_argument("--resume", metavar="FILE", help="go on from a checkpoint to --steps")


def _workers(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:
        return text


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 1 or more")
    return int(text)


def _counts(text: str) -> int | list[int]:
    counts = [_count(part.strip()) for part in text.split(",")]
    return counts if "," in text else counts[0]


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _depth(text: str | None) -> str | tuple[int, ...] | None:
    words = _words(text or "")
    if words and all(w.lstrip("-").isdecimal() for w in words):
        return tuple(map(int, words))
    return text


def _options(args: argparse.Namespace) -> dict[str, Any]:
    names = "network stages microbatches steps batch rate eval_every".split()
    return {name: getattr(args, name) for name in names}


def train(args: argparse.Namespace, _: list[str]) -> int:
    from tqdm import tqdm

    from .compare import methods_for
    from .runs import record
    from .trainer.files import refuse_unwritable
    from .trainer.session import last
    from .training import prepare

    outputs = {name: getattr(args, name) for name in ("save", "trace", "checkpoint")}
    for name, path in outputs.items():
        if path:
            refuse_unwritable(f"--{name}", path)
    places = [os.path.realpath(path) for path in outputs.values() if path]
    if len(set(places)) < len(places):
        raise ValueError("--save, --trace and --checkpoint: two of them name one file")
    if bool(args.save_every) != bool(args.checkpoint):
        raise ValueError("--save-every and --checkpoint belong together: give both, or neither")
    options = _options(args)
    [(name, method)] = methods_for(args.task, [args.method], options, _depth(args.depth))
    rank, world = (int(os.environ.get(n, d)) for n, d in (("RANK", 0), ("WORLD_SIZE", 1)))
    if world > 1 and args.workers not in (None, "env"):
        raise ValueError("--workers: under torchrun its own ranks are the workers; leave it out")
    workers = args.workers if args.workers is not None else "env" if world > 1 else 0
    job = prepare(
        args.task, method, seed=args.seed, workers=workers, device=args.device,
        timeout=args.timeout, **options,
    )  # fmt: skip
    if args.resume:
        job = job.resumed(args.resume)
    chunks, run = (
        job.chunks(
            save_every=args.save_every, save_to=args.checkpoint, full_trace=bool(args.trace)
        ),
        None,
    )
    if rank:  # rank 0 speaks for all
        last(chunks)
        return 0
    with tqdm(total=job.steps, desc=name, unit="step", leave=False, file=sys.stderr) as bar:
        try:
            for run in chunks:
                bar.update(run.steps - bar.n)
                if run.losses:
                    bar.set_postfix_str(f"loss {run.losses[-1]:.4f}", refresh=False)
        except KeyboardInterrupt:  # between two chunks, or the second one: the first is the run's
            with suppress(KeyboardInterrupt):
                chunks.close()
    if run is None:
        raise KeyboardInterrupt
    print(f"{args.task}, {method}: {run.status}" + (f" ({run.note})" if run.note else ""))
    _print_run(run)
    if args.save:
        run.save(args.save)
    if args.trace:
        run.save_trace(args.trace)
    if args.json:
        _print_json("train", args, [record(run, name, args.seed)])
    return int(run.status == "failed")


def _print_run(run: Run) -> None:
    if run.diverged:
        step, stage, what = run.diverged
        print(f"diverged at step {step + 1}, stage {stage + 1}: {what}")
    for metric, values in run.metrics.items():
        print(f"test {metric}: {values[-1][1]:.4f} after {values[-1][0]} steps")
    delays = ", ".join(f"{d.mean:.2f}" for d in run.staleness.forward)
    print(f"staleness of forward weights per stage: {delays}")
    u = run.utilization
    print(f"utilization by the clock: {u.model:.3f} in steady state, {u.run:.3f} for this run")
    if u.measured:
        print(f"measured per worker: {', '.join(f'{m:.3f}' for m in u.measured)}")
    print(f"{run.steps} steps in {run.seconds:.1f} s; {run.config['placement']}")


def compare(args: argparse.Namespace, _: list[str]) -> int:
    from tqdm import tqdm

    from . import tasks
    from .compare import LEGEND, methods_for, table
    from .compare import compare as runs
    from .runs import jobs_here
    from .trainer.registry import method_names

    options = _options(args)
    names = method_names() if args.methods is None else args.methods
    methods = methods_for(args.task, names, options, _depth(args.depth))
    order = [name for name, _ in methods]
    jobs = args.jobs or jobs_here()
    records = []
    total = len(methods) * args.seeds
    coming = runs(args.task, methods, args.seeds, jobs, **options)
    try:
        with tqdm(total=total, unit="run", leave=False, file=sys.stderr) as bar:
            for r in coming:
                records.append(r)
                bar.set_postfix_str(f"{r['method']} seed {r['seed']}: {r['status']}")
                bar.update()
    except KeyboardInterrupt:
        pass
    if len(records) < total:
        print(f"interrupted: {len(records)} of {total} runs ended")
    records.sort(key=lambda r: (order.index(r["method"]), r["seed"]))
    if records:
        print(table(records, args.task))
        print(LEGEND.format(score=tasks.get(args.task).score))
    if args.json:
        _print_json("compare", args, records)
    return 0


def reproduce(args: argparse.Namespace, _: list[str]) -> int:
    records = reproduction.reproduce(args)
    if args.json:
        _print_json("reproduce", args, records)
    return 0


def bench(args: argparse.Namespace, _: list[str]) -> int:
    from importlib import import_module

    module = import_module(f".bench.{args.what}", __package__)
    rows, coming = [], getattr(module, args.what)(args.rounds)
    print(module.heading(args.rounds))
    for row in coming:
        rows.append(row._asdict())
        print(module.line(row), flush=True)
    if args.json:
        _print_json("bench", args, rows)
    return 0


def grade(args: argparse.Namespace, rest: list[str]) -> int:
    from .lessons.grade import main as grade_folder

    return grade_folder(Parser(prog="pipemare-edu grade"), rest)


def doctor(args: argparse.Namespace, _: list[str]) -> int:
    from .doctor import text

    print(text())
    return 0


def lessons(args: argparse.Namespace, _: list[str]) -> int:
    from pathlib import Path

    from .handout import hand_out, reset, said
    from .lab import copy_in

    folder = Path(args.folder) if args.folder else copy_in(Path.cwd())
    changes = [reset(folder, lesson) for lesson in args.reset] + hand_out(folder)
    print("\n".join(said(changes)) or f"{folder} is up to date")
    return 0


def lab(args: argparse.Namespace, rest: list[str]) -> int:
    from .lab import main as open_lab

    return open_lab(rest)


COMMANDS = {
    "train": train,
    "compare": compare,
    "reproduce": reproduce,
    "bench": bench,
    "grade": grade,
    "doctor": doctor,
    "lessons": lessons,
    "lab": lab,
}


def _print_json(command: str, args: argparse.Namespace, runs: list[Any]) -> None:
    config = {k: v for k, v in vars(args).items() if k not in ("command", "json")}
    line = {"command": command, "version": __version__, "config": config, "runs": runs}
    print(json.dumps(line, allow_nan=False))
