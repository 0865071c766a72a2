"""Tests of the averaging of weights."""

from pathlib import Path

import numpy as np
import pytest

from guide.blend import blend


def write(path: Path, **weights: list[float]) -> Path:
    np.savez(path, **{name: np.array(values, np.float32) for name, values in weights.items()})  # type: ignore[arg-type]
    return path


def test_each_file_has_its_share(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a.npz", x=[0, 4], y=[1]), write(tmp_path / "b.npz", x=[8, 4], y=[5])
    blend([first, second], [3, 1], tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as mean:
        assert mean["x"].tolist() == [2, 4]
        assert mean["y"].tolist() == [2]
        assert mean["x"].dtype == np.float32


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a.npz", x=[0]), write(tmp_path / "b.npz", z=[8])
    with pytest.raises(ValueError, match=r"b\.npz has other weights"):
        blend([first, second], [1, 1], tmp_path / "out.npz")
