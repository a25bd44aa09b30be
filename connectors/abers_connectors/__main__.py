"""The entry of the `abers` command.

Governing rule: Ctrl-C is a wish and no error from the first moment on, while
everything is still being imported too.
"""

# ruff: noqa: PLC0415 - the import inside the function is the rule above

from __future__ import annotations

import signal
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    try:
        from abers_connectors import cli

        cli.main()
    except KeyboardInterrupt:
        sys.stderr.write("Stopped.\n")
        sys.exit(128 + signal.SIGINT)


if __name__ == "__main__":
    main()
