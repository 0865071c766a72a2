"""The layer with Poolhouse itself: the files of the commit that the installed app uses."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from app import __version__
from app.node.updates.updater import ADDRESS, ROOT
from installers.payload.places import PROJECT, git
from scripts.setup_errors import Trouble

FOLDERS = ("app/", "backends/", "resources/")
SINGLE = ("CHANGELOG.md", "LICENSE")
LEFT_OUT = re.compile(r"^resources/guide\.gguf$|\.ts$")  # a layer of its own; the source of translations
DIST_INFO = """Metadata-Version: 2.4
Name: poolhouse
Version: {version}
Summary: The computers of one household run one language model together.
License-Expression: Apache-2.0
"""


def build(folder: Path, version: str, updates: Path | None = None) -> None:
    """Make the layer in `folder`. Raises Trouble.

    updates: a folder with the root of the publisher's keys, and the address of updates if there is one.
    """
    for name in git("ls-files", "-z").split("\0"):
        if name.startswith(FOLDERS) or name in SINGLE:
            if LEFT_OUT.search(name):
                continue
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(PROJECT / name, target)
    init = folder / "app" / "__init__.py"
    text = init.read_text("utf-8")
    if version != __version__:
        init.write_text(text.replace(f'"{__version__}"', f'"{version}"'), "utf-8")
    if updates is not None:
        _copy_update_keys(updates, folder / "resources" / "updates")
    info = folder / f"poolhouse-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(DIST_INFO.format(version=version) + _required(), "utf-8")
    (info / "licenses").mkdir()
    shutil.copyfile(PROJECT / "LICENSE", info / "licenses" / "LICENSE")


def _copy_update_keys(source: Path, target: Path) -> None:
    target.mkdir(parents=True)
    try:
        shutil.copyfile(source / ROOT, target / ROOT)
    except OSError as error:
        raise Trouble(f"{source} has no {ROOT} for updates. docs/releasing.md says how to make one.") from error
    if (source / ADDRESS).is_file():
        shutil.copyfile(source / ADDRESS, target / ADDRESS)


def _required() -> str:
    """Return the lines of the metadata that name the packages that are needed, for the page About."""
    import tomllib

    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]
    return "".join(f"Requires-Dist: {name}\n" for name in project["dependencies"])
