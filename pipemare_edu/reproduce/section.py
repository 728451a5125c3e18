"""A task in the report: its tables, its figures, and what they say in a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from .. import tasks
from ..compare import final
from ..figures import Figure, Track, arrivals, scores
from ..runs import Record
from ..tasks import Setting
from . import reported
from .presets import METHODS
from .render import Table, shown
from .study import Case
from .summary import Row, clock


@dataclass(frozen=True)
class Section:
    """The runs of a task that there are, and a row for each method."""

    case: Case
    records: list[Record]
    rows: list[Row]

    @property
    def title(self) -> str:
        return f"{self.case.part.kind}: {tasks.get(self.case.part.task).title}"

    @property
    def known(self) -> Setting:
        """The task's own setting."""
        return tasks.get(self.case.part.task).setting(self.case.network)

    @property
    def setting(self) -> str:
        """The numbers that the runs share."""
        known, fixes = self.known, self.case.fixes
        steps = f"{self.case.steps} steps"
        if self.case.steps != known.steps:
            steps += f" (the task's own are {known.steps})"
        return (
            f"{known.about}; P = {known.stages} stages, N = {known.microbatches}, batch "
            f"{known.batch}, {steps}, rate {known.rate:g}; T1 over {fixes.t1} "
            f"steps, T2 with D = {fixes.t2:.3g}, T3 for {fixes.t3} steps."
        )

    @property
    def order(self) -> str:
        """The methods from the worst to the best, in words."""
        known = sorted((r for r in self.rows if r.mean is not None), key=lambda r: r.mean or 0.0)
        alike = (list(rows) for _, rows in groupby(known, key=lambda r: shown(r.mean, ".1f")))
        listed = " < ".join(
            f"{' = '.join(METHODS[r.method] for r in rows)} {shown(rows[0].mean, '.1f')}"
            for rows in alike
        )
        return f"Measured order of mean {self.rows[0].score}: {listed or 'no run yet'}."

    @property
    def reported(self) -> str:
        """Which of the paper's rows stands beside ours."""
        row = self.rows[0]
        if not row.reported_setting:
            return "The paper has no such network."
        text = f"The reported columns are the paper's row {row.reported_setting}."
        if row.reported_utilization:
            text += f" It reports a utilization of {row.reported_utilization}."
        return text

    def target(self, share: float) -> str:
        """What the target is, in words."""
        row = self.rows[0]
        if row.target is None:
            return "Target: not known without a run of GPipe."
        return f"Target: {row.pace} of {row.target:.1f}, which is {100 * share:g} % of GPipe's."

    def origins(self, origins: Mapping[str, str]) -> Table:
        """Settings, and where their values are from."""
        values = vars(self.known) | vars(self.case.fixes) | {"steps": self.case.steps}
        rows = tuple((name, str(values[name]), text) for name, text in origins.items())
        return Table(("setting", "value", "from"), rows)

    def outcome(self) -> Table:
        """Quality, what the method costs, and the paper's row."""
        head = (
            "method", "runs", f"{self.rows[0].score}, measured", "diverged", "staleness",
            "memory, measured", "utilization over GPipe's, clock", "quality, reported",
            "memory, reported",
        )  # fmt: skip
        return Table(head, tuple(map(_outcome, self.rows)))

    def to_target(self) -> Table:
        """Time to target and the three factors that make it."""
        head = (
            "method", "reach it", "steps", "step ratio", "T3's bill", "utilization",
            "time to target",
        )  # fmt: skip
        return Table(head, tuple(map(_to_target, self.rows)))

    def ends(self) -> Figure:
        """How the runs ended, beside the paper's row."""
        row, known = self.rows[0], reported.row(self.case.part.kind, self.case.network)
        return scores(
            {
                label: [
                    None if r["status"] == "diverged" else final(r, row.score)
                    for r in self.records
                    if r["method"] == name
                ]
                for name, label in METHODS.items()
            },
            row.score,
            {METHODS[r.method]: r.reported_quality.number for r in self.rows if r.reported_quality},
            f"reported {known.metric}, {known.setting.partition(',')[0]}" if known else "",
        )

    def race(self) -> Figure:
        """How soon they got there."""
        row = self.rows[0]
        tracks = {label: list(self._tracks(name)) for name, label in METHODS.items()}
        return arrivals(tracks, row.pace, "modelled time, in steps of GPipe", row.target)

    def _tracks(self, name: str) -> Iterator[Track]:
        """Evaluations of a method's runs over modelled time; T3's steps take as long as GPipe's."""
        method, pace = self.case.methods[name], self.rows[0].pace
        baseline = self.case.methods["gpipe"]
        ratio = clock(self.case, method).interval / clock(self.case, baseline).interval
        for record in self.records:
            if record["method"] == name:
                values = record["metrics"].get(pace, [])
                known = [(k, v) for k, v in values if v is not None]
                times = [min(k, method.t3) + max(0, k - method.t3) * ratio for k, _ in known]
                yield Track(times, [v for _, v in known], record["status"] == "diverged")


def _outcome(row: Row) -> tuple[str, ...]:
    spread = "" if row.spread is None else f" ± {row.spread:.1f}"
    formula = shown(row.memory_formula, after="x by its formula here").strip("-")
    return (
        METHODS[row.method],
        str(row.runs),
        shown(row.mean, ".1f") + spread,
        f"{row.diverged} of {row.runs}",
        shown(row.staleness),
        shown(row.memory, after="x"),
        shown(row.utilization, after="x"),
        "-" if row.reported_quality is None else str(row.reported_quality),
        "; ".join(filter(None, [row.reported_memory, formula])) or "-",
    )


def _to_target(row: Row) -> tuple[str, ...]:
    return (
        METHODS[row.method],
        f"{row.reached} of {row.runs}",
        shown(row.steps, "d"),
        shown(row.step_ratio),
        shown(row.t3_bill),
        shown(row.utilization, after="x"),
        shown(row.time, ".3f"),
    )
