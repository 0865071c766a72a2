"""Tests on public models: `make real` fetches them and runs these. Where they are not there, each is skipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.real_models import MODELS, folder, missing
from tests.node.pool import TestNode, paired

HERE = Path(__file__).parent
FOLDER, MISSING = folder(), missing()  # now: each test has a home of its own
SECONDS = 240


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE not in item.path.parents:
            continue
        item.add_marker(pytest.mark.real)
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(SECONDS))
        if MISSING:
            why = f"needs {' and '.join(MISSING)}: `make real` fetches it"
            item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(scope="session")
def kept() -> Path:
    """The folder of the real models."""
    return FOLDER


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[TestNode]]:
    """A household of three; the first is host and has both models, each by the name of its file."""
    with paired(tmp_path_factory.mktemp("real"), "den", "attic", "kitchen") as made:
        for model in MODELS:
            done = made[0].run("import", str(FOLDER / model.file), "--name", model.file)
            assert done.returncode == 0, done.stdout + done.stderr
        yield made
