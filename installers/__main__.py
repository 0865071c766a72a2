"""`python -m installers` builds the installers for this system into dist/."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path

from app import __version__
from app.core.reasons import size
from app.machine.versions.tree_hash import file_hash
from installers.linux import appimage, deb
from installers.payload import payload
from installers.payload.places import RESULTS
from scripts.progress import clock_face
from scripts.setup_errors import Trouble

PACKERS = {"deb": deb.pack, "appimage": appimage.pack}


def main() -> int:
    """Build, or explain in one sentence why that failed. Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m installers", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="deb, appimage (default: both)")
    parser.add_argument("--version", default=__version__, help="another version number, for tests of updates")
    parser.add_argument("--rebuild", action="store_true", help="build all layers again, without the engine")
    parser.add_argument(
        "--updates", type=Path, metavar="DIR", help="the folder with root.json and address.txt (docs/releasing.md)"
    )
    chosen = parser.parse_args()
    if unknown := sorted(set(chosen.kinds) - set(PACKERS)):
        parser.error(f"unknown: {', '.join(unknown)}. Choose from {', '.join(PACKERS)}.")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    started = time.monotonic()
    try:
        if sys.platform != "linux":
            raise Trouble("These installers are built on Linux.")
        built = payload.build(chosen.version, chosen.rebuild, chosen.updates)
        if note := payload.check_clean():
            print(note)
        for layer in built.layers:
            print(f"    {layer.name:10} {size(layer.n_bytes):>10}  {layer.hash[:16]}")
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"poolhouse-{built.version}.cdx.json").write_text(built.sbom, "utf-8")
        for kind in chosen.kinds or PACKERS:
            result = PACKERS[kind](built)
            print(f"{result.name}: {size(result.stat().st_size)}, SHA-256 {file_hash(result)}", flush=True)
    except Trouble as trouble:
        print(f"\n{trouble}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. The next run goes on with the layers that are finished.", file=sys.stderr)
        return 130
    print(f"Built in {clock_face(time.monotonic() - started)}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
