"""What Colab wants to be asked for."""

from __future__ import annotations

import sys

from ..doctor import COLAB


def allow_widgets() -> None:
    """Let Colab draw widgets that are not its own, as a panel's figures are.  Nothing elsewhere."""
    if COLAB in sys.modules:
        from google.colab import output

        output.enable_custom_widget_manager()
