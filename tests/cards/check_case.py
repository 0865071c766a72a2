"""The comparison with the processor on two devices: `python -m tests.cards.check_case NAME [WRONG]`.

A tiny model is one stage, divided between both devices. WRONG: the device that computes the wrong weights, or `head`
for an output matrix that is wrong while all layers are right.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from app.catalog.gguf.gguf_file import read_header
from backends.contract import FamilyUnfit, StageConfig
from backends.llamacpp import binding, device_check
from tests.cards.device import VULKAN0, VULKAN1, on_device
from tests.families import proof
from tests.families.fixtures import families

HEAD = "head"


def two_devices(folder: Path, family: str) -> StageConfig:
    """Return the whole model as a stage whose second half is on the second device."""
    home = proof.home(folder)
    entry = home.shelf.import_file(families()[family].path)
    config = on_device(home.config(entry, *proof.runs(entry.model.n_layers, ())[0], apart=False))
    first = len(config.layers) // 2
    counts = (first, len(config.layers) - first)
    return replace(config, more_devices=(VULKAN1,), device_layers=counts, compared=True)


def reversed_weights(path: Path, other: Path, name: str) -> None:
    """Write a copy of a file in which the bytes of one tensor are in reverse order, 4 at a time."""
    tensor, data = read_header(path).tensors[name], bytearray(path.read_bytes())
    span = slice(tensor.offset, tensor.offset + tensor.n_bytes)
    data[span] = np.frombuffer(data[span], np.uint32)[::-1].tobytes()
    other.write_bytes(data)


def misplaced(other: Path, wrong: str) -> Callable[..., Any]:
    """Return a way to load models that takes the other file for what the wrong device computes."""
    load = binding.load_model

    def load_other(path: str, on: binding.LayerDevices = binding.PROCESSOR, **more: Any) -> Any:
        is_wrong = bool(on.n_first) if wrong == VULKAN1 else bool(on.addresses) and not on.n_first
        return load(str(other) if is_wrong else path, on, **more)

    return load_other


def main(arguments: list[str]) -> int:
    """Print how far the devices differ, or which one was refused and why."""
    family, *rest = arguments
    wrong = rest[0] if rest else ""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = two_devices(folder, family)
        if wrong:
            other = folder / "other.gguf"
            reversed_weights(Path(config.path), other, "output.weight" if wrong == HEAD else "blk.0.ffn_down.weight")
            binding.load_model = misplaced(other, VULKAN0 if wrong == HEAD else wrong)
        try:
            stage = device_check.open_stage(config)
        except FamilyUnfit as refused:
            print(json.dumps({"refused": refused.cause, **refused.facts}), flush=True)
            return 0
        check = stage.check
        print(json.dumps({"devices": stage.layer_devices, "apart": check.apart if check else None}), flush=True)
        stage.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
