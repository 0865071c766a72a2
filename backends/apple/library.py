"""The folder with MLX, which is installed apart from Poolhouse, on the path of this process."""

from __future__ import annotations

import os
import sys

from backends.contract import DeviceUnusable


def load(folder: str) -> None:
    """Make MLX of this folder importable. Raises DeviceUnusable.

    The folder is searched last, so that it replaces nothing of the base installation. Empty: MLX is on the path.
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
