"""The entry point of `python -m app`, which runs the command `poolhouse`."""

import os
import sys

from app import __version__, launcher
from app.machine.versions.version_lock import hold

if __name__ == "__main__":
    watched = os.environ.pop(launcher.WATCHED, "")  # only this process is judged, and none that it starts
    in_use = hold(os.environ.get(launcher.FOLDER, ""), __version__)

    from app.cli import main

    code = main()
    if "app.machine.versions.restart" in sys.modules:  # otherwise nothing asked for it
        sys.modules["app.machine.versions.restart"].restart_if_wanted(sys.argv[1:])
    if watched:  # unlike a crash, which Python ends with 1 too
        code = {1: launcher.REFUSED, 2: launcher.WRONG_USAGE}.get(code, code)
    sys.exit(code)
