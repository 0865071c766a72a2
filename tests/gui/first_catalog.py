"""A catalog with one model for programs of a test, which a hub on their computer serves."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from tests.catalog.hub_server import COMMIT, FILE, REPOSITORY

PROJECT = Path(__file__).resolve().parents[2]
NAME = "Evening"
# Each Python that is started with this folder in its path reads this catalog in place of the one that ships.
PATCH = """from pathlib import Path
from app.catalog import model_catalog
model_catalog.load_catalog.__wrapped__.__defaults__ = (Path({path!r}),)
"""


def search_path(folder: Path, file: Path, facts: dict[str, Any]) -> str:
    """Return a PYTHONPATH with which this file is the only model of the catalog. `facts` are those of it."""
    folder.mkdir()
    size, sha256 = file.stat().st_size, hashlib.sha256(file.read_bytes()).hexdigest()
    part = {"file": FILE, "quantization": "Q8_0", "size_bytes": size, "sha256": sha256, "recommended": True}
    model = {
        "id": "evening", "name": NAME, "maker": "Maker", "about": "A small model for one evening at home.",
        "about_in": {"de": "Ein kleines Modell für einen Abend."}, "good_at": ["chat", "code"],
        "active_parameters": None, "license": "MIT", "gated": False, "repository": REPOSITORY, "revision": COMMIT,
        "starter": 1, "files": [part],
    }  # fmt: skip
    catalog = folder / "catalog.json"
    catalog.write_text(json.dumps({"made": "2026-11-01", "models": [model | facts]}))
    (folder / "sitecustomize.py").write_text(PATCH.format(path=str(catalog)))
    return os.pathsep.join([str(folder), str(PROJECT)])
