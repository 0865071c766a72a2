"""A catalog with one model for programs of a test, which a hub on their computer serves."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.catalog.model_catalog import Catalog, OfferedFile, OfferedModel
from testbed import tiny
from tests.catalog.hub_server import COMMIT, FILE, REPOSITORY, HubServer
from tests.node.pool import TestNode, node

PROJECT = Path(__file__).resolve().parents[2]
NAME = "Evening"
SHAPE = tiny.Shape(layers=4, width=256, ffn=512, context=512)  # of a model that takes hardly any time
FACTS = {"parameters": 4_000_000, "architecture": "llama", "n_layers": 4, "context_length": 512,
         "kv_bytes_per_token": 4 << 10}  # fmt: skip
# Each Python that is started with this folder in its path reads this catalog in place of the one that ships.
PATCH = """from pathlib import Path
from app.catalog import model_catalog
model_catalog.load_catalog.__wrapped__.__defaults__ = (Path({path!r}),)
"""


def search_path(folder: Path, file: Path, facts: dict[str, Any]) -> str:
    """Return a PYTHONPATH with which this file is the only model of the catalog. `facts` are those of it."""
    folder.mkdir()
    size, sha256 = file.stat().st_size, hashlib.sha256(file.read_bytes()).hexdigest()
    model = OfferedModel(
        id="evening",
        name=NAME,
        maker="Maker",
        about="A small model for one evening at home.",
        about_in={"de": "Ein kleines Modell für einen Abend."},
        good_at=("chat", "code"),
        n_languages=None,
        active_parameters=None,
        license="MIT",
        gated=False,
        repository=REPOSITORY,
        revision=COMMIT,
        files=(OfferedFile(FILE, "Q8_0", size, sha256, recommended=True),),
        starter=1,
        **facts,
    )
    catalog = folder / "catalog.json"
    catalog.write_bytes(msgspec.json.encode(Catalog("2026-11-01", (model,))))
    (folder / "sitecustomize.py").write_text(PATCH.format(path=str(catalog)))
    return os.pathsep.join([str(folder), str(PROJECT)])


@contextmanager
def node_with_catalog(hub: HubServer, folder: Path, facts: dict[str, Any]) -> Iterator[TestNode]:
    """A node whose catalog holds the model of a hub, on a computer where LM Studio holds another one."""
    served, person = folder / "served.gguf", folder / "person"
    served.write_bytes(hub.data)
    theirs = person / ".lmstudio" / "models" / "maker" / "other-GGUF"
    theirs.mkdir(parents=True)
    tiny.llama(theirs / "other-model-F16.gguf", tiny.Shape(layers=4, width=256, ffn=512, context=512, seed=7))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", search_path(folder / "catalog", served, facts))
        patch.setenv("HF_ENDPOINT", hub.hub.endpoint)
        patch.setenv("HOME", str(person))
        patch.setenv("USERPROFILE", str(person))
        for name in ("HF_HOME", "HF_HUB_CACHE", "OLLAMA_MODELS", "XDG_DATA_HOME"):
            patch.delenv(name, raising=False)
        with node(folder / "den", "den") as made:
            yield made
