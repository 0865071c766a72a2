"""The test of an engine that is installed apart, with a small model, whose answer llama.cpp gives too."""

from __future__ import annotations

from dataclasses import dataclass

from backends.contract import APPLE, PYTORCH, KnownAnswer, StageError
from backends.known_answer import compare


@dataclass(frozen=True, slots=True)
class EngineTrial:
    """The version, device and families of an engine, and the result of its test."""

    version: str
    device: str  # as in StageConfig.device; empty: the processor
    device_name: str  # for people
    architectures: tuple[str, ...]
    answer: KnownAnswer


def try_engine(engine: str, folder: str, model: str) -> EngineTrial:
    """Import an engine from a folder, and compare its answer with that of llama.cpp. Raises StageError.

    model: the path of a whole model.
    """
    version, device, name, architectures = _described(engine, folder)
    return EngineTrial(version, device, name, architectures, compare(model, device, folder, engine))


def _described(engine: str, folder: str) -> tuple[str, str, str, tuple[str, ...]]:
    match engine:
        case "pytorch":
            return _pytorch(folder)
        case "apple":
            return _mlx(folder)
    raise StageError(f"only {PYTORCH} and {APPLE} are installed apart, not {engine}")


def _pytorch(folder: str) -> tuple[str, str, str, tuple[str, ...]]:
    from backends.pytorch import library

    library.load(folder)
    import torch

    from backends.pytorch.families.registry import FAMILIES

    if torch.cuda.is_available():  # ROCm's devices have this name too
        device, name = "cuda:0", torch.cuda.get_device_name(0)
    elif torch.backends.mps.is_available():
        device, name = "mps", "Apple GPU"
    else:
        device, name = "", ""
    return str(torch.__version__), device, name, tuple(sorted(FAMILIES))


def _mlx(folder: str) -> tuple[str, str, str, tuple[str, ...]]:
    from backends.apple import library

    library.load(folder)
    import mlx.core as mx

    from backends.apple.families.registry import FAMILIES

    has_metal = mx.metal.is_available()
    device, name = ("Metal", "Apple GPU") if has_metal else ("", "")
    return str(mx.__version__), device, name, tuple(sorted(FAMILIES))
