"""Tests on public models: `make real` fetches them and runs these. Where they are not there, each is skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.real_models import folder, missing

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
