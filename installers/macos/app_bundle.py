"""`python -m installers macos` writes what can be made of Poolhouse.app on any system into dist/macos.

A Mac adds Python, the engine and the program itself: `bash dist/macos/finish_on_mac.sh PYTHON SHA256`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from app import __version__
from app.core.reasons import size
from app.machine import data_format
from app.machine.versions import tree_hash
from installers.macos import description, icon, wheels
from installers.payload import app_layer, models_layer, trees
from installers.payload.places import MANIFEST, PACKAGE_LAYERS, RESULTS, commit_time, git
from scripts.setup_errors import Trouble

FOLDER = RESULTS / "macos"
LAYER_NAMES = ("models", *PACKAGE_LAYERS, "app")  # a Mac adds the others
SCRIPTS = ("finish_on_mac.sh", "make_dmg.sh", "sign_and_notarize.sh", "launcher.c")


def main(arguments: Sequence[str]) -> int:
    """Build, or explain in one sentence why that failed. Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m installers macos", description=__doc__)
    parser.add_argument("--version", default=__version__, help="another version number, for tests of updates")
    chosen = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        made = build(FOLDER, chosen.version)
    except Trouble as trouble:
        print(f"\n{trouble}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 130
    for layer in LAYER_NAMES:
        print(f"    {layer:10} {size(tree_hash.tree_bytes(made / description.LAYERS / layer)):>10}")
    print(f"{made} lacks Python, the engine and its program: run {FOLDER / SCRIPTS[0]} on a Mac.")
    return 0


def build(folder: Path, version: str) -> Path:
    """Write the bundle and the scripts that finish it into `folder`, and return the description. Raises Trouble."""
    made = folder / f"{description.NAME}.app"
    description.write(made, version, commit_time(), icon.icns(icon.drawn()))
    layers = made / description.LAYERS
    for name in PACKAGE_LAYERS:
        wheels.install(layers / name, name)
    (layers / "app").mkdir()
    app_layer.build(layers / "app", version)
    models_layer.build(layers / "models")
    hashes = {name: tree_hash.tree_hash(layers / name) for name in LAYER_NAMES}
    commit = git("rev-parse", "HEAD").strip()
    manifest = {
        "version": version, "commit": commit, "kind": "macos", "command": "", "layers": hashes,
        "data_format": data_format.FORMAT,
    }  # fmt: skip
    (layers / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")
    for name in SCRIPTS:
        shutil.copyfile(Path(__file__).with_name(name), folder / name)
    (folder / "entitlements.plist").write_bytes(description.entitlements())
    trees.normalize(made, commit_time())
    return made
