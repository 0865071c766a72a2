"""The entry point of `python -m app`, which runs the command `poolhouse`."""

import sys

from app.cli import main

if __name__ == "__main__":
    sys.exit(main())
