"""Tests with PyTorch and MLX: `make engines` installs them apart and runs these. Others import neither."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.apple import library as mlx_library
from backends.pytorch import library
from tests.engines.torch_folder import torch_folder

HERE = Path(__file__).parent
SECONDS = 300


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave these files out where they are not wanted or torch and MLX are missing, because they import them."""
    if HERE not in collection_path.parents:
        return None
    folder = torch_folder()
    if folder is None or "not engines" in config.option.markexpr:
        return True
    library.load(str(folder))
    mlx_library.load(str(folder))
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.engines)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(SECONDS))


@pytest.fixture(scope="session")
def pytorch() -> str:
    """The folder with torch."""
    return str(torch_folder())
