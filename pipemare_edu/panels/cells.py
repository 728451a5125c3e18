"""Which cell made a panel: a cell that is run again replaces the panel that it made before.

Otherwise the old one would go on training, out of sight.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol


class Disposable(Protocol):
    def dispose(self) -> None: ...


class Cells:
    """The panels of each cell, with the execution that made them."""

    _made: ClassVar[dict[str, tuple[str, list[Disposable]]]] = {}

    @classmethod
    def claim(cls, panel: Disposable) -> None:
        """Note that the running cell made `panel`; dispose of what its earlier runs made.

        Does nothing where cells have no names (a script, an older front end).
        """
        cell, execution = cls.running()
        if not cell:
            return
        before, panels = cls._made.get(cell, ("", []))
        if before != execution:
            for old in panels:
                old.dispose()
            panels = []
        cls._made[cell] = execution, [*panels, panel]

    @staticmethod
    def running() -> tuple[str, str]:
        """(the running cell's id, the id of this run of it), empty where there is none."""
        from IPython import get_ipython

        shell: Any = get_ipython()
        if not hasattr(shell, "get_parent"):
            return "", ""
        request = shell.get_parent() or {}
        cell = request.get("metadata", {}).get("cellId", "")
        return cell, request.get("header", {}).get("msg_id", "")
