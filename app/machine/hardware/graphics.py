"""The graphics cards that the system reports, whether or not an engine can use them."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from app.core.errors import Reason
from app.machine.hardware.engines import Engine

PCI = Path("/sys/bus/pci/devices")
NVIDIA_CARDS = Path("/proc/driver/nvidia/gpus")  # created by NVIDIA's driver, with a folder for each card
NAMES = (Path("/usr/share/misc/pci.ids"), Path("/usr/share/hwdata/pci.ids"))
DISPLAY = "0x03"  # class prefix of every graphics device
NVIDIA, AMD, INTEL = "0x10de", "0x1002", "0x8086"  # cards of other makers are in servers, or virtual
MAKERS = {NVIDIA: "NVIDIA", AMD: "AMD", INTEL: "Intel"}
OWN_BYTES = 2 << 30  # integrated graphics reserve less memory than this
CLASS = r"SYSTEM\CurrentControlSet\Control\Class\{4d36e968-e325-11ce-bfc1-08002be10318}"
MAX_CARDS = 16
NVIDIA_DRIVER = Path("/proc/driver/nvidia/version")
NVIDIA_WORDS = ("nvidia", "geforce", "quadro", "tesla")
CUDA_PACKS = ((580, "CUDA 13"), (525, "CUDA 12"))  # each with the oldest driver that runs it


def unused_cards(engines: Sequence[Engine], names: Iterable[str]) -> Reason | None:
    """Return a reason that names the graphics cards that no engine can use, or None if there are none.

    names: the cards as reported by the system. They are used only if the engines report no cards, because the two spell
    the same name differently.
    """
    devices = [device for engine in engines for device in engine.devices]
    seen = {device.description or device.name for device in devices if device.kind == "gpu"}
    cards = sorted(seen or set(names))[:MAX_CARDS]
    return Reason("graphics_unused", {"cards": ", ".join(cards), "pack": pack_for(cards[0])}) if cards else None


def list_cards() -> list[str]:
    """Return the names of all cards with dedicated memory, and of Apple's GPU. Reads files."""
    if sys.platform == "darwin":
        return ["Apple GPU"] if platform.machine() == "arm64" else []
    with suppress(OSError):
        if sys.platform == "win32":
            return _in_registry()
        return cards_on_bus(PCI)
    return []


def pack_for(card: str) -> str:
    """Return the back end whose engine pack works best with a card of this name. Reads files."""
    words = card.casefold()
    if "apple" in words:
        return "Metal"
    if not any(word in words for word in NVIDIA_WORDS):
        return "Vulkan"  # decodes faster than ROCm on AMD's cards
    version = _nvidia_driver()
    return next((pack for least, pack in CUDA_PACKS if version >= least), "Vulkan")


def _nvidia_driver() -> int:
    """Return the major version of NVIDIA's driver, or 0 if it is not installed."""
    with suppress(OSError):
        if sys.platform == "win32":
            return _nvidia_driver_in_registry()
        return driver_version(_text(NVIDIA_DRIVER))
    return 0


def driver_version(text: str) -> int:
    """Parse the major version from Linux's description of NVIDIA's driver, or return 0 if there is none."""
    match = re.search(r"Kernel Module.*?(\d+)\.\d+", text)
    return int(match[1]) if match else 0


def windows_driver_version(version: str) -> int:
    """Return the major version of NVIDIA's driver, given the version in the Windows registry.

    The driver's own version is in the last five digits: `32.0.15.8065` is 580.65.
    """
    digits = version.replace(".", "")[-5:]
    return int(digits[:3]) if len(digits) == 5 and digits.isdecimal() else 0


def cards_on_bus(bus: Path) -> list[str]:
    """Return the names of the graphics cards among Linux's PCI devices."""
    return [_name(device) for device in sorted(bus.iterdir()) if is_discrete_card(device)]


def cards_of(makers: Sequence[str], bus: Path = PCI) -> list[Path]:
    """Return the graphics devices of these makers that Linux lists, including integrated ones."""
    devices = sorted(bus.iterdir()) if bus.is_dir() else []
    return [d for d in devices if _line(d / "vendor") in makers and _line(d / "class").startswith(DISPLAY)]


def is_asleep(device: Path) -> bool:
    """Return whether Linux has powered down a device. Reading its sensors would wake it."""
    return _line(device / "power" / "runtime_status") == "suspended"


def is_discrete_card(device: Path) -> bool:
    """Return whether a device on the PCI bus is a graphics card with its own memory."""
    maker = _line(device / "vendor")
    if maker not in MAKERS or not _line(device / "class").startswith(DISPLAY):
        return False
    if maker == INTEL:
        return device.name.split(":")[1] != "00"  # devices on bus 00 are part of the processor
    return maker == NVIDIA or int(_line(device / "mem_info_vram_total") or 0) >= OWN_BYTES


def _name(device: Path) -> str:
    for line in _text(NVIDIA_CARDS / device.name / "information").splitlines():
        if line.startswith("Model:"):
            return line.partition(":")[2].strip()
    maker, ident = _line(device / "vendor"), _line(device / "device")
    texts = (_text(file) for file in NAMES)
    model = next((title for text in texts if (title := model_name(text, maker, ident))), "")
    return f"{MAKERS[maker]} {model}".strip()


def model_name(names: str, maker: str, ident: str) -> str:
    """Return the name of a card from the content of pci.ids, or "" if the card is not listed.

    A product name in brackets is preferred, as in `GA106 [GeForce RTX 3060]`.
    """
    is_maker = False
    for line in names.splitlines():
        if line[:1] not in ("\t", "#", ""):
            is_maker = line.startswith(maker[2:])
        elif is_maker and line.startswith(f"\t{ident[2:]} "):
            name = line.split(maxsplit=1)[1]
            return name.partition("[")[2].rstrip("]") or name
    return ""


def _line(file: Path) -> str:
    return _text(file).strip()


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


if sys.platform == "win32":
    import winreg

    def _in_registry() -> list[str]:
        """Return the names of the cards with dedicated memory in the Windows registry."""
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, CLASS) as adapters:
            names = [_adapter(adapters, f"{number:04}") for number in range(MAX_CARDS)]
        return [name for name in names if name]

    def _nvidia_driver_in_registry() -> int:
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, CLASS) as adapters:
            return max((_driver(adapters, f"{number:04}") for number in range(MAX_CARDS)), default=0)

    def _driver(adapters: winreg.HKEYType, number: str) -> int:
        try:
            with winreg.OpenKey(adapters, number) as key:
                if "nvidia" not in str(winreg.QueryValueEx(key, "DriverDesc")[0]).casefold():
                    return 0
                return windows_driver_version(str(winreg.QueryValueEx(key, "DriverVersion")[0]))
        except OSError:
            return 0

    def _adapter(adapters: winreg.HKEYType, number: str) -> str:
        try:
            with winreg.OpenKey(adapters, number) as key:
                own_bytes = int(winreg.QueryValueEx(key, "HardwareInformation.qwMemorySize")[0])
                return str(winreg.QueryValueEx(key, "DriverDesc")[0]) if own_bytes >= OWN_BYTES else ""
        except OSError:
            return ""
