"""The devices of the loaded back ends: the processor, graphics cards and other accelerators."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass

from backends.contract import DeviceUnusable
from backends.llamacpp import binding

KINDS = ("cpu", "gpu", "igpu", "accelerator")  # ggml_backend_dev_type


class _Properties(ctypes.Structure):
    """The C structure ggml_backend_dev_props."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("description", ctypes.c_char_p),
        ("free", ctypes.c_size_t),
        ("total", ctypes.c_size_t),
        ("kind", ctypes.c_int),
        ("id", ctypes.c_char_p),
        ("capabilities", ctypes.c_bool * 5),
    )


@dataclass(frozen=True, slots=True)
class Device:
    """A device, described by its back end."""

    address: int  # ggml_backend_dev_t
    name: str  # unique in this process, such as `Vulkan0`
    description: str  # the product's name
    kind: str  # cpu, gpu (with memory of its own), igpu (uses main memory), accelerator or other
    api: str  # the name of the back end: CPU, CUDA, ROCm, Vulkan or Metal
    pci: str  # its place on the PCI bus, such as `0000:c1:00.0`, or "" if the back end does not report it
    free_bytes: int
    total_bytes: int


def devices() -> Iterator[Device]:
    """Yield all devices."""
    pointer = ctypes.c_void_p
    count = binding.ggml("ggml_backend_dev_count", ctypes.c_size_t)
    get = binding.ggml("ggml_backend_dev_get", pointer, ctypes.c_size_t)
    describe = binding.ggml("ggml_backend_dev_get_props", None, pointer, ctypes.POINTER(_Properties))
    registry = binding.ggml("ggml_backend_dev_backend_reg", pointer, pointer)
    api = binding.ggml("ggml_backend_reg_name", ctypes.c_char_p, pointer)
    for index in range(count()):
        address, about = get(index), _Properties()
        describe(address, ctypes.byref(about))
        yield Device(
            address=address,
            name=_text(about.name),
            description=_text(about.description),
            kind=KINDS[about.kind] if about.kind < len(KINDS) else "other",
            api=_text(api(registry(address))),
            pci=_text(about.id),
            free_bytes=about.free,
            total_bytes=about.total,
        )


def device(name: str) -> Device:
    """Return a device by name. Raises DeviceUnusable if no loaded back end has it."""
    match = next((known for known in devices() if known.name == name), None)
    if match is None:
        raise DeviceUnusable(f"there is no device {name}", "device_missing", device=name)
    return match


def _text(text: bytes | None) -> str:
    return (text or b"").decode("utf-8", "replace").strip()
