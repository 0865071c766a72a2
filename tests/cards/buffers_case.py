"""`python -m tests.cards.buffers_case MODEL…`: what llama.cpp allocates to compute on the device, and the estimate.

MODEL: a family of tests/families, or the path of a GGUF file. Nothing is computed, so no code is compiled.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from app.catalog.gguf.gguf_file import read_header
from app.catalog.gguf.model_reader import model_of
from app.core.planner.stage_memory import cells_read, work_bytes
from backends.contract import LLAMACPP, Role, StageConfig, can_separate_slots
from backends.llamacpp import binding
from backends.llamacpp.stage import LlamaStage
from tests.cards.device import VULKAN0, library
from tests.families.fixtures import families

ROWS = 64
CONTEXTS = ((2, 512), (2, 32768), (8, 8192))  # users and positions of each: the software device aborts beyond


@dataclass(frozen=True, slots=True)
class Buffers:
    """The memory that a whole model needs besides its weights and KV cache."""

    model: str
    users: int
    context: int
    estimated_bytes: int
    device_bytes: int
    host_bytes: int  # in main memory


class Unwarmed(LlamaStage):
    """A stage that computes nothing when it opens."""

    def _warm_up(self) -> None:
        """Compile no code."""


def buffers(name: str, path: Path, users: int, context: int) -> Buffers:
    model = model_of(read_header(path), name, "")
    cells, vulkan = users * context, library()
    config = StageConfig(
        LLAMACPP,
        str(path),
        "",
        Role.WHOLE,
        model.layers,
        model.width,
        users,
        cells,
        ROWS,
        1,
        apart=can_separate_slots(users, cells, context),
        traits=model.cuts.traits(Role.WHOLE),
        device=VULKAN0,
        library=str(vulkan),
    )
    stage = Unwarmed(config)
    device = stage.work_buffers.get(VULKAN0, 0)
    host = sum(stage.work_buffers.values()) - device
    stage.close()
    estimated = work_bytes(model.width, ROWS, cells_read(users, cells, context)) + 4 * users * model.n_vocab
    return Buffers(name, users, context, estimated, device, host)


def main(names: list[str]) -> int:
    """Print the buffers of all models as JSON."""
    binding.load()
    known = families()
    paths = {name: known[name].path if name in known else Path(name) for name in names}
    results = [asdict(buffers(name, path, *sizes)) for name, path in paths.items() for sizes in CONTEXTS]
    print(json.dumps({"results": results}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
