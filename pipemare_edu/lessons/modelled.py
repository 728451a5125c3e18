"""Four devices that nobody has: traces by the clock in which one thing, a stage or a link, holds up
all the others.  The pipe runs so far ahead that nothing else counts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import cycle, islice

from ..plan.clock import Event, Timeline, simulate
from ..plan.schedules import schedule

DEPTHS = (9, 6, 3, 0)
STEPS = 24
Thing = tuple[str, int]  # ("stage", 3) or ("link", 2), counted from 1; link 2 joins stages 2 and 3


@dataclass(frozen=True)
class Devices:
    """Units of the clock: of a forward and a backward at every stage, and of a message's way over
    every link, which one message has to itself."""

    forward: tuple[float, ...]
    backward: tuple[float, ...]
    link: tuple[float, ...]

    @property
    def timeline(self) -> Timeline:
        lists = schedule(DEPTHS, len(DEPTHS), 1, STEPS)
        return simulate(lists, self.forward, self.backward, transfer=self.link)

    @property
    def interval(self) -> float:
        """Time per microbatch, once the pipe is full."""
        return self.timeline.interval or 0.0

    @property
    def needs(self) -> dict[Thing, float]:
        """What a microbatch takes of every stage, and of every link one way."""
        both = zip(self.forward, self.backward, strict=True)
        stages: dict[Thing, float] = {("stage", i): f + b for i, (f, b) in enumerate(both, 1)}
        return stages | {("link", i): time for i, time in enumerate(self.link, 1)}

    @property
    def slowest(self) -> Thing:
        """The thing that a microbatch takes the most time of."""
        return max(self.needs, key=lambda thing: self.needs[thing])

    def faster(self, thing: Thing) -> Devices:
        """The same with one thing twice as fast."""
        kind, i = thing
        if kind == "link":
            return replace(self, link=_halved(self.link, i - 1))
        return replace(
            self, forward=_halved(self.forward, i - 1), backward=_halved(self.backward, i - 1)
        )


def _halved(times: tuple[float, ...], i: int) -> tuple[float, ...]:
    return times[:i] + (times[i] / 2,) + times[i + 1 :]


# Stage 2 takes the most of a microbatch, and stage 1 has the longest operation.
LONG_BACKWARD = Devices((1, 6, 2, 2), (8, 6, 3, 3), (1, 1, 1))


def machines(count: int) -> Iterator[Devices]:
    """`count` small machines, random but for the first, each with one thing clearly the slowest:
    every stage and every link in turn."""
    draw = random.Random(9)
    yield LONG_BACKWARD
    things = cycle([("stage", i) for i in (1, 2, 3, 4)] + [("link", i) for i in (1, 2, 3)])
    yield from (_machine(draw, slow) for slow in islice(things, count - 1))


def _machine(draw: random.Random, slow: Thing) -> Devices:
    made = Devices(
        tuple(draw.randint(1, 4) for _ in DEPTHS),
        tuple(draw.randint(2, 6) for _ in DEPTHS),
        tuple(draw.randint(0, 6) for _ in DEPTHS[1:]),
    )
    most = max(need for thing, need in made.needs.items() if thing != slow)
    kind, i = slow
    name = "link" if kind == "link" else draw.choice(["forward", "backward"])
    times = list(getattr(made, name))
    times[i - 1] = round(1.3 * most) + 1
    return replace(made, **{name: tuple(times)})


def modelled() -> Timeline:
    """The clock's run that lesson 09 shows."""
    return SHOWN.timeline


class Events(list[Event]):
    """A timeline's events by their start, as a run's trace has them, in a few words."""

    @classmethod
    def of(cls, timeline: Timeline) -> Events:
        return cls(sorted((e for row in timeline.events for e in row), key=lambda e: e.start))

    def __repr__(self) -> str:
        return f"a trace of {len(self)} events"


# Stage 3 works the most, and link 2 holds it up.
SHOWN = Devices((2, 3, 3, 2), (4, 4, 5, 3), (2, 11, 3))
