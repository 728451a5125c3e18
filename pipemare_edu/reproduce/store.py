"""Finished runs in a folder, one file each, found again by all that they depend on."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from ..runs import Record
from ..trainer.files import write_atomically

FORMAT = "pipemare_edu reproduce 1"
Config = dict[str, Any]


class Store:
    """The folder `path`, made if it is not there.

    A file is either whole or not there.  One that was damaged since, or that belongs to another
    configuration, is as good as none.  Raises ValueError for a folder that cannot be written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._runs = self.path / "runs"
        try:
            self._runs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"{self.path}: {error.strerror}; give another folder") from None
        if not os.access(self._runs, os.W_OK):
            raise ValueError(f"{self.path} cannot be written; give another folder")

    def get(self, config: Config) -> Record | None:
        """The record of the run with exactly this configuration, or None."""
        try:
            stored = json.loads(self.file(config).read_bytes())
            known = stored["format"] == FORMAT and stored["config"] == _plain(config)
            return stored["record"] if known else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, config: Config, record: Record) -> None:
        """Keep a finished run."""
        value = {"format": FORMAT, "config": config, "record": record}
        write_atomically(self.file(config), json.dumps(value, allow_nan=False).encode())

    def file(self, config: Config) -> Path:
        """Where the run with this configuration is kept: task, method and seed for a reader, and a
        hash of it all."""
        text = json.dumps(config, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        task = config["task"].partition(":")[0]
        return self._runs / f"{task}-{config['method']}-{config['seed']}-{digest}.json"


def _plain(config: Config) -> Any:
    """As JSON gives it back: lists for tuples."""
    return json.loads(json.dumps(config))
