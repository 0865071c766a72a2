"""The import of MLX, which is installed separately from Poolhouse."""

from __future__ import annotations

import os
import sys

from backends.contract import DeviceUnusable


def load(folder: str) -> None:
    """Import MLX from this folder. Raises DeviceUnusable.

    The folder is appended to the import path, so it cannot replace modules of the base installation. If it is empty,
    MLX must already be on the path.
    """
    if folder and folder not in sys.path:
        if not os.path.isdir(folder):
            raise DeviceUnusable(f"{folder} is not there", "mlx_missing", why=f"{folder} is not there")
        sys.path.append(folder)
    try:
        import mlx.core as mx
    except (ImportError, OSError) as error:
        raise DeviceUnusable(f"MLX cannot be loaded: {error}", "mlx_missing", why=str(error)) from None
    mx.random.seed(0)  # also shows that the library works, not only its Python part
