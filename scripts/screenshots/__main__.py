"""`make screenshots` writes to build/screenshots. The household runs in one process, and each window in another."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "build" / "screenshots"
SCENES = (
    "usual", "ten", "dialogs", "pseudo", "thoughts", "limited", "failed-load", "too-big", "folder-away",
    "no-node", "lost-node",
)  # fmt: skip
REAL = "real"  # README's pictures, with a public model of `make real`


def main() -> int:
    """Run the household and, for each scene, a window in its own process."""
    words = argparse.ArgumentParser(prog="scripts.screenshots", description=__doc__)
    words.add_argument("--to", type=Path, default=FOLDER, help="the folder for the pictures")
    words.add_argument("--scale", type=float, default=1.0, help="text size, 1.0 to 2.0")
    words.add_argument("--language", default="en", help="en or de")
    words.add_argument("--only", choices=(*SCENES, REAL), nargs="+", default=SCENES, help="these scenes")
    words.add_argument("--of", type=Path, help=argparse.SUPPRESS)
    options = words.parse_args()
    if options.of is None:
        from scripts.screenshots.household import household

        look = ("--to", str(options.to), "--scale", str(options.scale), "--language", options.language)
        return asyncio.run(household(look, [scene for scene in (REAL, *SCENES) if scene in options.only]))
    from scripts.screenshots.camera import application
    from scripts.screenshots.scenes import shoot

    shoot(options.only[0], application(options.language), options.of, options.to, options.scale)
    return 0


if __name__ == "__main__":
    sys.exit(main())
