"""`python -m installers` builds the installers into dist/."""

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
from installers.macos import app_bundle as macos
from installers.payload import payload
from installers.payload.payload import Payload
from installers.payload.places import RESULTS
from installers.windows import payload as windows_payload
from installers.windows import setup_program
from scripts.progress import clock_face
from scripts.setup_errors import Trouble

PACKERS = {"deb": deb.pack, "appimage": appimage.pack}
WINDOWS, MACOS = "windows", "macos"


def main() -> int:
    """Build, or explain in one sentence why that failed. Return the exit code."""
    if sys.argv[1:2] == [MACOS]:  # the only one that is also made on another system, in part
        return macos.main(sys.argv[2:])
    parser = argparse.ArgumentParser(prog="python -m installers", description=__doc__)
    parser.add_argument(
        "kinds", nargs="*", metavar="KIND", help="deb, appimage (default: both), windows; or macos alone"
    )
    parser.add_argument("--version", default=__version__, help="another version number, for tests of updates")
    parser.add_argument("--rebuild", action="store_true", help="build all layers again, without the engine")
    parser.add_argument(
        "--updates", type=Path, metavar="DIR", help="the folder with root.json and address.txt (docs/releasing.md)"
    )
    parser.add_argument("--stand-in", action="store_true", help="windows: with a Python that is only for tests")
    chosen = parser.parse_args()
    if unknown := sorted(set(chosen.kinds) - {*PACKERS, WINDOWS}):
        parser.error(f"unknown: {', '.join(unknown)}. Choose from {', '.join([*PACKERS, WINDOWS])}.")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    started = time.monotonic()
    try:
        if sys.platform != "linux":
            raise Trouble("These installers are built on Linux.")
        if note := payload.check_clean():
            print(note)
        RESULTS.mkdir(exist_ok=True)
        if kinds := [kind for kind in chosen.kinds or PACKERS if kind != WINDOWS]:
            built = payload.build(chosen.version, chosen.rebuild, chosen.updates)
            tell_layers(built, f"poolhouse-{built.version}.cdx.json")
            for kind in kinds:
                tell(PACKERS[kind](built))
        if WINDOWS in chosen.kinds:
            built = windows_payload.build(chosen.version, chosen.rebuild, chosen.stand_in)
            tell_layers(built, "" if chosen.stand_in else f"poolhouse-{built.version}-windows.cdx.json")
            tell(setup_program.pack(built, stand_in=chosen.stand_in))
    except Trouble as trouble:
        print(f"\n{trouble}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. The next run goes on with the layers that are finished.", file=sys.stderr)
        return 130
    print(f"Built in {clock_face(time.monotonic() - started)}.")
    return 0


def tell_layers(built: Payload, sbom: str) -> None:
    """Print the layers, and write the list of components into dist/ under this name, if any."""
    for layer in built.layers:
        print(f"    {layer.name:10} {size(layer.n_bytes):>10}  {layer.hash[:16]}")
    if sbom:
        (RESULTS / sbom).write_text(built.sbom, "utf-8")


def tell(result: Path) -> None:
    """Print what was built."""
    print(f"{result.name}: {size(result.stat().st_size)}, SHA-256 {file_hash(result)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
