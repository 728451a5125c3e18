"""python -m pipemare_edu"""

import signal
import sys

from .cli import main


def run() -> None:
    """The command, as a process of its own: another Ctrl-C does not disturb its end."""
    status = main()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(status)


if __name__ == "__main__":
    run()
