"""The entry point of `python -m app`, which runs the command `poolhouse`."""

import sys

from app.cli import main

if __name__ == "__main__":
    code = main()
    if "app.machine.versions.restart" in sys.modules:  # otherwise nothing asked for it
        sys.modules["app.machine.versions.restart"].restart_if_wanted(sys.argv[1:])
    sys.exit(code)
