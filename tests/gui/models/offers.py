"""Models of a catalog for tests, and downloads as the node sends them."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from app.api.models import CatalogModel, HubFile
from app.decoding import convert
from tests.findings import tells

Json = dict[str, Any]
GIB = 1 << 30


def file(quantization: str, gib: float, **changes: Any) -> HubFile:
    facts = {
        "file": f"m-{quantization}.gguf",
        "quantization": quantization,
        "size_bytes": int(gib * GIB),
        "sha256": None,
        "recommended": False,
        "usable": True,
        "reason": None,
        "on_shelf": None,
        "download": None,
    }
    return convert(facts | changes, HubFile)


def offer(ident: str = "large-70b", *files: HubFile, **changes: Any) -> CatalogModel:
    """A model with 80 layers, that splits."""
    facts = {
        "id": ident,
        "name": "Large 70B",
        "maker": "Maker",
        "about": "Good at long answers.",
        "good_at": ["chat", "code"],
        "parameters": 70_000_000_000,
        "active_parameters": None,
        "architecture": "llama",
        "n_layers": 80,
        "context_length": 131072,
        "kv_bytes_per_token": 320 << 10,
        "license": "Example license 1.0",
        "gated": False,
        "splits": True,
        "repository": "maker/large-70b",
        "revision": "main",
        "page": "https://example.org/large-70b",
    }
    made = convert(facts | changes, CatalogModel)
    return replace(made, files=list(files) or [file("Q4_K_M", 39.7, recommended=True), file("Q2_K", 0.5)])


def download(state: str, **changes: Any) -> Json:
    if changes.get("reason"):
        changes |= tells(changes["reason"])
    return {
        "id": "d1",
        "name": "Large 70B",
        "repository": "maker/large-70b",
        "file": "m-Q4_K_M.gguf",
        "revision": "main",
        "source": "huggingface.co",
        "state": state,
        "done_bytes": 10 * GIB,
        "total_bytes": 40 * GIB,
        "bytes_per_s": 100 << 20,
        "seconds_left": 307,
        "reason": None,
        "code": None,
        "sha256": None,
        "hash_from": "catalog",
        "model": None,
        "started": 1,
    } | changes
