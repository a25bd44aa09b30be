"""The entry point of the `abers` command.

Ctrl-C stops the command without a traceback, even during the first imports.
"""

# ruff: noqa: PLC0415 - the import is inside the function so that Ctrl-C is handled during it

from __future__ import annotations

import signal
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    try:
        from abers_connectors.cli import main

        main.main()
    except KeyboardInterrupt:
        sys.stderr.write("Stopped.\n")
        sys.exit(128 + signal.SIGINT)


if __name__ == "__main__":
    main()
