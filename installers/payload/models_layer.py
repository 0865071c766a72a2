"""The layer with the models that come with Poolhouse: the Guide, and SmolLM2 135M Instruct for the first real chat."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from installers.payload.places import PROJECT
from scripts.real_models import SMOLLM2, fetch
from scripts.real_models import folder as kept_models

GUIDE = PROJECT / "resources" / "guide.gguf"
SHIPPED_AS = "SmolLM2-135M-Instruct"  # the name that users see, without the number format


def build(folder: Path) -> None:
    """Make the layer in `folder`. Raises Trouble."""
    folder.mkdir(parents=True, exist_ok=True)
    fetch(SMOLLM2, kept_models())
    _link_or_copy(GUIDE, folder / GUIDE.name)
    _link_or_copy(kept_models() / SMOLLM2.file, folder / f"{SHIPPED_AS}.gguf")
    shutil.copyfile(kept_models() / f"{SMOLLM2.file}.LICENSE", folder / f"{SHIPPED_AS}.gguf.LICENSE.txt")


def _link_or_copy(source: Path, target: Path) -> None:
    if source == GUIDE:
        shutil.copyfile(source, target)  # dates of files in the checkout stay as they are
        return
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
