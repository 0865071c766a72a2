"""Tests of what Linux reports of AMD's and Intel's cards, from trees of files like those of the kernel."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from app.machine.sensors.linux_cards import LinuxCards, parse_fdinfo

if sys.platform != "linux":
    pytest.skip("reads Linux' files", allow_module_level=True)

GIB = 1 << 30
AMD, INTEL = "0000:03:00.0", "0000:00:02.0"
SECOND_NS = 10**9


class Computer:
    """A bus with an AMD card and Intel's integrated graphics, and processes that have opened them."""

    def __init__(self, root: Path) -> None:
        self.bus, self.proc = root / "bus", root / "proc"
        self.proc.mkdir()
        self.now_ns = 0
        device = self.device(
            AMD,
            "0x1002",
            {
                "gpu_busy_percent": "97",
                "mem_info_vram_total": str(16 * GIB),
                "mem_info_vram_used": str(5 * GIB),
                "hwmon/hwmon3/temp1_input": "64000",
                "hwmon/hwmon3/temp2_input": "81000",
            },
        )
        self.amd = device
        self.device(INTEL, "0x8086", {})
        self.device("0000:00:1f.0", "0x8086", {}, kind="0x060100")  # a bridge
        self.cards = LinuxCards(self.bus, self.proc, lambda: self.now_ns)

    def device(self, place: str, vendor: str, files: dict[str, str], kind: str = "0x030000") -> Path:
        folder = self.bus / place
        for name, text in {"vendor": vendor, "class": kind, **files}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text + "\n")
        return folder

    def opened(self, pid: int, place: str, *lines: str, client: int = 1, name: str = "7") -> None:
        folder = self.proc / str(pid)
        for part in ("fd", "fdinfo"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        link = folder / "fd" / name
        if not link.is_symlink():
            os.symlink("/dev/dri/renderD128", link)
        head = [
            "pos:\t0",
            "flags:\t02100002",
            "drm-driver:\tamdgpu",
            f"drm-client-id:\t{client}",
            f"drm-pdev:\t{place}",
        ]
        (folder / "fdinfo" / name).write_text("\n".join([*head, *lines]) + "\n")


@pytest.fixture
def computer(tmp_path: Path) -> Computer:
    return Computer(tmp_path)


def test_the_files_of_an_amd_card(computer: Computer) -> None:
    intel, amd = computer.cards.read()
    assert (amd.pci, amd.is_discrete, amd.celsius, amd.busy_percent, amd.used_bytes) == (AMD, True, 64.0, 97.0, 5 * GIB)
    assert (intel.pci, intel.is_discrete, intel.celsius, intel.busy_percent) == (INTEL, False, None, None)
    assert (amd.holders, amd.percents) == (frozenset(), None)


def test_the_use_by_each_process_is_known_from_the_second_reading_on(computer: Computer) -> None:
    (computer.proc / "meminfo").write_text("")
    computer.opened(77, AMD, "drm-engine-gfx:\t0 ns", "drm-engine-compute:\t5 ns", "drm-memory-vram:\t2097152 KiB")
    computer.opened(4242, AMD, "drm-engine-gfx:\t1000 ns", "drm-engine-dec:\t0 ns", "drm-memory-vram:\t1024 KiB")
    (amd,) = [card for card in computer.cards.read() if card.pci == AMD]
    assert (amd.percents, amd.holders) == (None, frozenset({77, 4242}))
    assert amd.held_bytes == {77: 2 * GIB, 4242: 1 << 20}
    computer.now_ns = 10 * SECOND_NS
    computer.opened(77, AMD, "drm-engine-gfx:\t0 ns", f"drm-engine-compute:\t{9 * SECOND_NS + 5} ns")
    computer.opened(4242, AMD, f"drm-engine-gfx:\t{4 * SECOND_NS + 1000} ns", f"drm-engine-dec:\t{9 * SECOND_NS} ns")
    computer.opened(5, AMD, f"drm-engine-gfx:\t{9 * SECOND_NS} ns")  # has just been opened
    (amd,) = [card for card in computer.cards.read() if card.pci == AMD]
    assert amd.percents == {77: pytest.approx(90.0), 4242: pytest.approx(40.0), 5: 0.0}


def test_two_clients_of_a_process_add_up_and_those_of_another_card_do_not_count(computer: Computer) -> None:
    for n_ns, now_ns in ((0, 0), (2 * SECOND_NS, 10 * SECOND_NS)):
        computer.now_ns = now_ns
        computer.opened(77, AMD, f"drm-engine-gfx:\t{n_ns} ns", client=1)
        computer.opened(77, AMD, f"drm-engine-gfx:\t{n_ns} ns", client=2, name="8")
        computer.opened(4242, INTEL, f"drm-engine-render:\t{n_ns} ns")
        computer.opened(4242, INTEL, f"drm-engine-render:\t{n_ns} ns", name="9")  # the same client, opened once more
        intel, amd = computer.cards.read()
    assert dict(amd.percents or {}) == {77: pytest.approx(40.0)}
    assert dict(intel.percents or {}) == {4242: pytest.approx(20.0)}


def test_xe_counts_cycles() -> None:
    def at(used: int, total: int) -> str:
        return (
            f"drm-pdev: {INTEL}\ndrm-client-id: 3\ndrm-cycles-rcs: {used}\ndrm-total-cycles-rcs: {total}\n"
            "drm-resident-vram0: 3 MiB\ndrm-total-vram0: 9 MiB\n"
        )

    parsed = parse_fdinfo(at(5, 100), now_ns=7)
    assert parsed is not None
    assert parsed[:2] == (INTEL, "3")
    assert (parsed[2].used, parsed[2].passed, parsed[2].held_bytes) == ({"rcs": 5}, {"rcs": 100}, 3 << 20)


@pytest.mark.parametrize(
    "text", ["", "pos:\t0\n", f"drm-pdev:\t{AMD}\n", "drm-client-id:\t1\n", ":\n:\n", "drm-pdev:\n"]
)
def test_a_file_that_is_none_of_a_card(text: str) -> None:
    assert parse_fdinfo(text, 0) is None


def test_what_cannot_be_read_is_unknown(computer: Computer) -> None:
    for name in ("gpu_busy_percent", "mem_info_vram_used", "hwmon/hwmon3/temp1_input", "hwmon/hwmon3/temp2_input"):
        (computer.amd / name).write_text("nonsense")
    (computer.proc / "99").mkdir()  # a process that ends
    (amd,) = [card for card in computer.cards.read() if card.pci == AMD]
    assert (amd.celsius, amd.busy_percent, amd.used_bytes) == (None, None, None)


def test_a_card_that_sleeps_is_not_woken(computer: Computer) -> None:
    (computer.amd / "power").mkdir()
    (computer.amd / "power" / "runtime_status").write_text("suspended\n")
    assert [card.pci for card in computer.cards.read()] == [INTEL]


def test_without_such_a_card_no_process_is_looked_at(tmp_path: Path) -> None:
    assert LinuxCards(tmp_path / "no bus", tmp_path / "no processes").read() == []
