"""The consequences of removing an engine pack."""

from __future__ import annotations

from collections.abc import Sequence

from app.core.errors import Reason
from app.machine.engine_packs.manifest import label
from app.machine.engine_packs.store import InstalledPack
from app.machine.hardware.cards import CARD_KINDS, is_same_card
from app.machine.hardware.engines import Device


def removal(pack: InstalledPack, packs: Sequence[InstalledPack]) -> Reason:
    """Return a reason that describes the consequences of removing a pack."""
    if not _computes(pack):
        return Reason("pack_removal_unused")
    remaining = [other for other in packs if _computes(other) and other.name != pack.name]
    cards = _cards(pack)
    left = [card for card in cards if not any(_is_offered(card, other) for other in remaining)]
    if not left:
        through = ", ".join(sorted({label(other.backend) for other in remaining}))
        return Reason("pack_removal_other", {"devices": _names(cards), "api": through})
    code = "pack_removal_others_compute" if any(map(_cards, remaining)) else "pack_removal_processor"
    return Reason(code, {"devices": _names(left)})


def _computes(pack: InstalledPack) -> bool:
    return pack.is_current and pack.problem is None and bool(_cards(pack))


def _cards(pack: InstalledPack) -> list[Device]:
    devices = pack.tested.devices if pack.tested else []
    return [device for device in devices if device.kind in CARD_KINDS]


def _is_offered(card: Device, pack: InstalledPack) -> bool:
    return any(is_same_card((card.pci, _name(card)), (other.pci, _name(other))) for other in _cards(pack))


def _name(device: Device) -> str:
    return device.description or device.name


def _names(devices: Sequence[Device]) -> str:
    return ", ".join(dict.fromkeys(map(_name, devices)))
