"""Results of long runs, shipped with the lessons: found again by what was asked for.

A result is stored under a hash of its configuration and of RESULTS, so a result that belongs to
another question, or to an older trainer, is never shown.  Files lie in data/; only a study's own
command writes them, a learner's kernel never does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..trainer.files import write_atomically

RESULTS = 1  # to be raised when the same configuration gives another result
DATA = Path(__file__).resolve().parent / "data"

Config = Mapping[str, Any]


def key(config: Config) -> str:
    """The hash of a configuration (what JSON can hold) and of RESULTS."""
    text = json.dumps({"results": RESULTS, "config": dict(config)}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Cache:
    """The results called `name`: what was shipped, and what this process has added.

    Values are what JSON can hold.  A file that is missing or was damaged is as good as none.
    """

    def __init__(self, name: str, folder: Path = DATA) -> None:
        self.path = folder / f"{name}.json"
        try:
            stored = json.loads(self.path.read_text(encoding="utf-8"))
            entries = {key(e["config"]): e for e in stored["results"]}
            self._entries = entries if stored["version"] == RESULTS else {}
        except (OSError, ValueError, KeyError, TypeError):
            self._entries = {}

    def get(self, config: Config) -> Any:
        """The result of exactly this configuration, or None."""
        entry = self._entries.get(key(config))
        return None if entry is None else entry["value"]

    def put(self, config: Config, value: Any) -> None:
        """Keep a result, in place of one of the same configuration."""
        self._entries[key(config)] = {"config": dict(config), "value": value}

    def matching(self, **config: Any) -> Iterator[tuple[dict[str, Any], Any]]:
        """(configuration, result) of every result whose configuration has these values."""
        for entry in self._entries.values():
            if config.items() <= entry["config"].items():
                yield entry["config"], entry["value"]

    def write(self) -> None:
        """Write everything to the file, a result a line."""
        lines = [json.dumps(e, sort_keys=True) for _, e in sorted(self._entries.items())]
        body = ",\n".join(lines)
        text = f'{{"version": {RESULTS}, "results": [\n{body}\n]}}\n'
        write_atomically(self.path, text.encode())
