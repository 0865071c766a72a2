"""The folder with torch, which is installed apart from Poolhouse, on the path of this process."""

from __future__ import annotations

import os
import sys

from backends.contract import DeviceUnusable


def load(folder: str) -> None:
    """Make torch of this folder importable. Raises DeviceUnusable.

    The folder is searched last, so that it replaces nothing of the base installation. Empty: torch is on the path.
    """
    if folder and folder not in sys.path:
        if not os.path.isdir(folder):
            raise DeviceUnusable(f"{folder} is not there", "torch_missing", why=f"{folder} is not there")
        sys.path.append(folder)
    try:
        import torch
    except (ImportError, OSError) as error:
        raise DeviceUnusable(f"torch cannot be loaded: {error}", "torch_missing", why=str(error)) from None
    torch.set_grad_enabled(False)
