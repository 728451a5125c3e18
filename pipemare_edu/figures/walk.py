"""A pipeline event by event: what every stage holds and what waits in every link.

walk(lists).states[n]    after n events, in the order of the virtual clock
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..plan.clock import Event, simulate, waits_for
from ..plan.ops import Op, Operations, receiver, sender

Ops = tuple[Op, ...]


@dataclass(frozen=True)
class State:
    """A pipeline between two events.

    done      per stage, how many of its operations have run
    held      per stage, the microbatches in flight there: forward run, backward not
    down, up  per link (0 is the one between stages 1 and 2), the operations whose output waits
              in it, first in line first: of forwards and evaluations, and of backwards
    versions  per stage, updates applied
    """

    done: tuple[int, ...]
    held: tuple[tuple[int, ...], ...]
    down: tuple[Ops, ...]
    up: tuple[Ops, ...]
    versions: tuple[int, ...]

    @property
    def in_flight(self) -> list[int]:
        """The microbatches that some stage holds or that wait in a link."""
        waiting = (op.index for link in (*self.down, *self.up) for op in link if op.kind != "E")
        return sorted({*(m for row in self.held for m in row), *waiting})


@dataclass(frozen=True)
class Walk:
    """Lists, the events in which they run, and the state before the first and after each."""

    lists: tuple[Operations, ...]
    events: tuple[Event, ...]
    states: tuple[State, ...]
    deadlock: str | None

    def next(self, at: int) -> list[Op | None]:
        """Per stage, the operation that comes next after `at` events; None at a list's end."""
        done = self.states[at].done
        return [ops[n] if n < len(ops) else None for ops, n in zip(self.lists, done, strict=True)]

    def stuck(self, at: int) -> dict[int, str]:
        """{stage: what it waits for}, if no stage can go on after `at` events though some have
        not finished."""
        if self.deadlock is None or at < len(self.events):
            return {}
        stages = len(self.lists)
        following = enumerate(self.next(at))
        return {i: waits_for(op, i, stages) for i, op in following if op is not None}


def walk(lists: Iterable[str | Iterable[Op]]) -> Walk:
    """Walk through operation lists, or their text.  ValueError for text that does not parse."""
    timeline = simulate(lists)
    placed = [(e.start, e.stage, n, e) for row in timeline.events for n, e in enumerate(row)]
    events = tuple(e for *_, e in sorted(placed))
    stages = len(timeline.lists)
    links = max(0, stages - 1)
    states = [State((0,) * stages, ((),) * stages, ((),) * links, ((),) * links, (0,) * stages)]
    for event in events:
        states.append(after(states[-1], event))
    return Walk(timeline.lists, events, tuple(states), timeline.deadlock)


def after(state: State, event: Event) -> State:
    """The state after one more event."""
    i, op, stages = event.stage, Op(event.kind, event.index), len(state.done)
    done, versions, held = list(state.done), list(state.versions), list(state.held)
    links = {"B": list(state.up), "F": list(state.down)}
    done[i] += 1
    versions[i] += op.kind == "U"
    if op.kind == "F":
        held[i] = (*held[i], op.index)
    elif op.kind == "B":
        held[i] = tuple(m for m in held[i] if m != op.index)
    lane = links["B" if op.kind == "B" else "F"]
    if (here := sender(op, i, stages)) is not None:
        waiting = list(lane[min(i, here)])
        waiting.remove(op)
        lane[min(i, here)] = tuple(waiting)
    if (there := receiver(op, i, stages)) is not None:
        lane[min(i, there)] = (*lane[min(i, there)], op)
    return State(tuple(done), tuple(held), tuple(links["F"]), tuple(links["B"]), tuple(versions))


def title(walk: Walk, at: int) -> str:
    """What the last of `at` events was, in a sentence."""
    if walk.stuck(at):
        return f"Deadlock after {at} events: no stage can go on"
    if not at:
        return f"Nothing has run yet: {len(walk.events)} events to come"
    event = walk.events[at - 1]
    ran = f"stage {event.stage + 1} ran {event.kind}{event.index}"
    end = ", and everything is done" if at == len(walk.events) else ""
    return f"Event {at} of {len(walk.events)}: {ran}{end}"


def spaced(values: Iterable[object]) -> str:
    """ "0 1 2", or "none"."""
    return " ".join(map(str, values)) or "none"


def in_words(walk: Walk, at: int) -> str:
    """What is in flight, what every stage holds and does next, and what waits in every link."""
    state, stuck = walk.states[at], walk.stuck(at)
    parts = [f"Microbatches in flight: {spaced(state.in_flight)}."]
    for i, op in enumerate(walk.next(at)):
        then = "has finished" if op is None else f"next {op}"
        then = stuck.get(i, then).removeprefix(f"stage {i + 1} ")
        holds = f"holds {spaced(state.held[i])}, weight version {state.versions[i]}"
        parts.append(f"Stage {i + 1} {holds}, {then}.")
        if i < len(state.down) and (state.down[i] or state.up[i]):
            down, up = spaced(state.down[i]), spaced(state.up[i])
            parts.append(f"In link {i + 1}–{i + 2} wait, down: {down}; up: {up}.")
    return " ".join(parts)
