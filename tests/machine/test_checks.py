"""Tests of the doctor's findings about this computer itself."""

from __future__ import annotations

import errno
import io
import threading
from pathlib import Path
from typing import Any

import pytest

from app.core.diagnostics import likeliest_cause
from app.core.errors import Reason
from app.core.lending.policy import Battery
from app.machine import checks, settings
from app.machine.hardware import graphics
from app.machine.hardware.engines import Device, Engine
from app.machine.models_folders import ModelsFolders
from app.machine.paths import Home
from app.machine.settings import ModelsChoice
from backends.contract import PROVED_ENGINES
from backends.worker.confine import Restrictions
from tests.findings import cause_of, cure_of

PROVED = PROVED_ENGINES[0]
GPU = Device("CUDA0", "NVIDIA RTX 3060", "gpu", "CUDA", 8 << 30, 12 << 30)
UNUSED_CARD = (
    "This computer has a graphics card ({}), but no engine pack for it is installed. Models run on the "
    "processor, which is slower. The card needs the pack for Vulkan."
)
UNUSED = "The engine llamacpp cannot be used:"


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        (
            Engine("llamacpp", PROVED, features=["AVX2", "FMA"], devices=[Device("CPU", kind="cpu")]),
            [(True, f"The engine llamacpp {PROVED} runs on A CPU with AVX2, FMA.")],
        ),
        (
            Engine("llamacpp", PROVED, devices=[GPU]),
            [
                (True, f"The engine llamacpp {PROVED} runs on A CPU."),
                (True, "NVIDIA RTX 3060 (CUDA): 8.0 GiB of 12.0 GiB is free."),
                (None, UNUSED_CARD.format("NVIDIA RTX 3060")),
            ],
        ),
        (
            Engine("llamacpp", missing=Reason("engine_words", {"words": "llama.cpp cannot be loaded: no libgomp"})),
            [(False, f"{UNUSED} llama.cpp cannot be loaded: no libgomp.")],
        ),
        (
            Engine("llamacpp", "0.3.35"),
            [
                (
                    None,
                    (
                        f"The engine llamacpp 0.3.35 can only run models on one machine because splitting has been "
                        f"tested only with {PROVED}."
                    ),
                )
            ],
        ),
        (
            Engine("llamacpp", missing=Reason("no_answer_within", {"seconds": 30})),
            [(False, f"{UNUSED} no answer within 30 seconds.")],
        ),
    ],
)
async def test_what_a_worker_says_of_its_engines(
    monkeypatch: pytest.MonkeyPatch, engine: Engine, expected: Any
) -> None:
    async def answer() -> list[Engine]:
        return [engine]

    monkeypatch.setattr(checks, "probe_all", answer)
    monkeypatch.setattr(checks, "processor_name", lambda: "A CPU")
    monkeypatch.setattr(graphics, "list_cards", list)
    monkeypatch.setattr(graphics, "_nvidia_driver", lambda: 0)
    assert [(check.ok, cause_of(check)) for check in await checks.engines()] == expected


async def test_a_card_that_no_engine_sees_is_a_note_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer() -> list[Engine]:
        return [Engine("llamacpp", PROVED, devices=[Device("CPU", kind="cpu")])]

    monkeypatch.setattr(checks, "probe_all", answer)
    monkeypatch.setattr(graphics, "list_cards", lambda: ["NVIDIA GA106"])
    monkeypatch.setattr(graphics, "_nvidia_driver", lambda: 0)
    card = (await checks.engines())[-1]
    assert (card.name, card.ok, cause_of(card)) == ("Device", None, UNUSED_CARD.format("NVIDIA GA106"))
    assert cure_of(card) == "To install an engine pack, open This computer, or run `poolhouse engine add FILE`."
    assert likeliest_cause([card]) is None  # it keeps nobody from being seen


@pytest.mark.parametrize(
    ("battery", "expected"),
    [
        (None, []),
        (Battery(43, plugged=False), [(None, "On battery, 43% left.")]),
        (Battery(43, plugged=True), [(True, "Plugged in.")]),
    ],
)
def test_power_is_told_where_there_is_a_battery(
    monkeypatch: pytest.MonkeyPatch, battery: Battery | None, expected: Any
) -> None:
    monkeypatch.setattr(checks, "battery", lambda: battery)
    assert [(check.ok, cause_of(check)) for check in checks.power()] == expected


def test_too_little_room_is_a_problem_and_some_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks._enough(5, 1, 4) is True
    assert checks._enough(3, 1, 4) is None
    assert checks._enough(0, 1, 4) is False


def test_what_the_window_has_words_for_has_a_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home.at(tmp_path / "none yet")
    assert checks.engine(Engine("x", missing=Reason("said_nothing")), "A CPU").code == "engine_missing"
    assert checks.writable(home).code == ""
    assert (checks.disk(home).code == "disk_low") is not checks.disk(home).ok
    assert str(home.downloaded) in cause_of(checks.disk(home))  # as `poolhouse folder` tells it
    monkeypatch.setattr(checks, "MIN_DISK_BYTES", 1 << 62)
    assert checks.disk(home).code == "disk_low"

    def refused(**_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refused)
    assert checks.writable(home).code == "home_unwritable"


def test_the_disk_is_that_of_the_models_and_may_be_away(tmp_path: Path) -> None:
    home, disk = Home.at(tmp_path / "home").create(), tmp_path / "disk"
    choice = ModelsChoice(str(disk), (), "a" * 32)
    settings.save(home.settings_file, settings.Settings("den", models=choice))
    check = checks.disk(home)
    assert (check.ok, check.code) == (False, "models_folder_away")
    assert not disk.exists()
    ModelsFolders(home.downloaded).claim(disk, "a" * 32)
    assert str(disk) in cause_of(checks.disk(home))


def test_a_folder_of_models_that_takes_nothing_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, disk = Home.at(tmp_path / "home").create(), tmp_path / "disk"
    choice = ModelsChoice(str(disk), (), "a" * 32)
    settings.save(home.settings_file, settings.Settings("den", models=choice))
    ModelsFolders(home.downloaded).claim(disk, "a" * 32)
    before = sorted(disk.iterdir())
    assert checks.disk(home).code in ("", "disk_low")
    assert sorted(disk.iterdir()) == before

    def refused(path: Path, data: bytes) -> int:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "write_bytes", refused)
    check = checks.disk(home)
    assert (check.ok, check.code) == (False, "models_folder_unusable")
    assert "Read-only file system" in cause_of(check)


def test_a_full_disk_is_no_home_that_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty file is made on it all the same."""

    class Full(io.BytesIO):
        def write(self, data: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: Full())
    check = checks.writable(Home.at(tmp_path))
    assert not check.ok
    assert cause_of(check).endswith("is not writable: No space left on device.")
    assert cure_of(check).startswith("Free some space")


async def test_no_check_of_the_disk_holds_the_loop_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: object) -> list[Any]:
        return []

    threads: list[threading.Thread] = []
    for name in ("disk", "writable"):
        monkeypatch.setattr(checks, name, lambda _: threads.append(threading.current_thread()))
    monkeypatch.setattr(checks, "engines", nothing)
    monkeypatch.setattr(checks, "key_store", nothing)
    await checks.machine_checks(Home.at(tmp_path))
    assert len(threads) == 2
    assert threading.main_thread() not in threads


async def test_a_passphrase_beside_its_key_is_no_more_than_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of the folder contains both."""
    monkeypatch.setenv("POOLHOUSE_KEYSTORE", "file")
    home = Home.at(tmp_path)
    check = await checks.key_store(home)
    assert check.ok is None
    assert "not in the system keyring but in a file" in cause_of(check)
    assert str(home.identity / "passphrase") in cause_of(check)
    assert str(home.root) in cure_of(check)
    monkeypatch.setenv("POOLHOUSE_KEYSTORE", "keyring")
    check = await checks.key_store(Home.at(tmp_path / "new"))
    assert (check.ok, "is kept in the system keyring." in cause_of(check)) == (True, True)


@pytest.mark.parametrize(
    ("kept_from", "ok", "words"),
    [
        (Restrictions(files=True, network=True), True, "no access to the network or to your files"),
        (Restrictions(files=True), None, "but it can reach the network. "),
        (Restrictions(network=True), None, "but it can read your other files, "),
        (Restrictions(), None, "can reach the network and your other files"),
        (None, None, "Poolhouse could not determine"),
    ],
)
def test_how_well_what_reads_model_files_is_confined(
    kept_from: Restrictions | None, ok: bool | None, words: str
) -> None:
    check = checks.confined(kept_from)
    assert (check.name, check.ok, words in cause_of(check)) == ("Sandbox", ok, True)
    assert bool(cure_of(check)) == (ok is None)
