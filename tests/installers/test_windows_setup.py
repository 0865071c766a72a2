"""The setup program for Windows, run under Wine: install, update, refuse, repair and remove."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.machine.versions.tree_hash import file_hash
from installers.windows import setup_program
from tests.installers.wine import ENVIRONMENT, LOCAL, RUN, UNINSTALL, Windows, small_payload, windows

LACKING = [name for name in ("wine", "makensis", "x86_64-w64-mingw32-gcc-posix") if not shutil.which(name)]
pytestmark = [
    pytest.mark.installers,
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform != "linux" or bool(LACKING), reason=f"needs {', '.join(LACKING) or 'Linux'}"),
]
OLD, NEW = "0.1.0", "0.10.0"  # as texts, the other way round
PROGRAM = rf"{LOCAL}\Programs\Poolhouse\Poolhouse.exe"


@pytest.fixture(scope="module")
def setups(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The setup programs of two versions."""
    made = {}
    for version in (OLD, NEW):
        folder = tmp_path_factory.mktemp("setup")
        built = setup_program.pack(small_payload(folder / "layers", version), stand_in=True)
        made[version] = Path(shutil.move(built, folder / built.name))
    return made


@pytest.fixture(scope="module")
def computer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Windows]:
    with windows(tmp_path_factory.mktemp("wine") / "prefix") as made:
        yield made


@pytest.fixture
def clean(computer: Windows) -> Iterator[Windows]:
    """A Windows without Poolhouse."""
    yield computer
    if computer.installed.exists():
        computer.uninstall("/DATA")
        shutil.rmtree(computer.installed, ignore_errors=True)


def test_it_installs_for_one_user_and_leaves_nothing_behind(clean: Windows, setups: dict[str, Path]) -> None:
    before, path_before = clean.files(), clean.value(ENVIRONMENT, "Path")
    assert clean.run(setups[OLD], "/S").returncode == 0, clean.said()
    names = {path.name for path in clean.installed.iterdir()}
    assert names == {
        "Poolhouse.exe", "app", "bin", "engine", "installed.json", "libraries", "models", "python", "sbom.cdx.json",
        "third-party-licenses.txt", "uninstall.exe",
    }  # fmt: skip
    assert (clean.installed / "app/app/__pycache__/__main__.cpython-313.pyc").exists()
    assert clean.link.exists()
    assert clean.value(UNINSTALL, "DisplayVersion") == OLD
    assert clean.value(UNINSTALL, "InstallLocation") == rf"{LOCAL}\Programs\Poolhouse"
    assert clean.value(ENVIRONMENT, "Path").endswith(rf"{LOCAL}\Programs\Poolhouse\bin")
    assert clean.value(RUN, "Poolhouse") == ""
    clean.uninstall()
    assert clean.files() == before
    assert clean.value(ENVIRONMENT, "Path") == path_before
    assert clean.value(UNINSTALL, "DisplayVersion") == ""


def test_autostart_is_as_the_app_writes_it_and_an_update_keeps_it(clean: Windows, setups: dict[str, Path]) -> None:
    clean.run(setups[OLD], "/S", "/AUTOSTART")
    line = subprocess.list2cmdline([PROGRAM, "--hidden"])  # as app/machine/autostart.py writes it
    assert clean.value(RUN, "Poolhouse") == line
    clean.run(setups[NEW], "/S")
    assert clean.value(RUN, "Poolhouse") == line
    clean.uninstall()
    assert clean.value(RUN, "Poolhouse") == ""


def test_the_entries_of_path_that_others_made_stay(clean: Windows, setups: dict[str, Path]) -> None:
    long = ";".join(rf"C:\tools\number {index:03}" for index in range(120))  # longer than NSIS can hold
    clean.run("reg", "add", ENVIRONMENT, "/v", "Path", "/t", "REG_EXPAND_SZ", "/d", long, "/f")
    try:
        clean.run(setups[OLD], "/S")
        clean.run(setups[NEW], "/S")
        assert clean.value(ENVIRONMENT, "Path") == rf"{long};{LOCAL}\Programs\Poolhouse\bin"
        clean.uninstall()
        assert clean.value(ENVIRONMENT, "Path") == long
    finally:
        clean.run("reg", "delete", ENVIRONMENT, "/v", "Path", "/f")


def test_the_command_passes_on_its_words_and_the_exit_code(clean: Windows, setups: dict[str, Path]) -> None:
    clean.run(setups[OLD], "/S")
    done = clean.run(clean.installed / "bin/poolhouse.exe", "code", "zwei Wörter", 'a "b"')
    assert done.returncode == 7
    assert done.stdout.strip() == ascii(["code", "zwei Wörter", 'a "b"'])
    assert clean.run(clean.installed / "Poolhouse.exe", "--hidden").returncode == 0


def test_an_update_replaces_the_files_and_a_downgrade_is_refused(clean: Windows, setups: dict[str, Path]) -> None:
    clean.run(setups[OLD], "/S")
    stale = clean.installed / "app/app/stale.py"
    stale.write_text("", "utf-8")
    assert clean.run(setups[NEW], "/S").returncode == 0
    assert not stale.exists()
    assert (clean.installed / "models/models ä.txt").read_text("utf-8") == NEW
    assert clean.run(setups[OLD], "/S").returncode == 2
    assert clean.said() == (
        f"Poolhouse {NEW} is installed, which is newer than {OLD}, so nothing was changed; uninstall it first to use "
        f"{OLD}."
    )
    assert (clean.installed / "models/models ä.txt").read_text("utf-8") == NEW


def test_a_running_copy_is_not_replaced(clean: Windows, setups: dict[str, Path]) -> None:
    clean.run(setups[OLD], "/S")
    with clean.start(clean.installed / "bin/poolhouse.exe", "wait") as running:
        assert running.stdout is not None
        assert running.stdout.readline().strip() == ascii(["wait"])
        assert clean.run(setups[NEW], "/S").returncode == 2
        assert clean.said().startswith("Poolhouse is running: quit it")
        assert (clean.installed / "models/models ä.txt").read_text("utf-8") == OLD
        running.kill()
    clean.wait_for_server()
    assert clean.run(setups[NEW], "/S").returncode == 0


def kill_when(computer: Windows, setup: Path, is_time: Callable[[], bool]) -> None:
    """Start a setup program, and kill it at some time."""
    with computer.start(setup, "/S") as killed:
        while killed.poll() is None and not is_time():
            time.sleep(0.001)
        killed.kill()
    computer.wait_for_server()


def test_a_killed_installation_says_so_and_the_next_run_repairs_it(clean: Windows, setups: dict[str, Path]) -> None:
    clean.run(setups[OLD], "/S")
    mark = clean.installed / "installing"
    kill_when(clean, setups[NEW], lambda: mark.exists() and (clean.installed / "bin/poolhouse.exe").exists())
    assert mark.exists(), "it was killed too late"
    if (command := clean.installed / "bin/poolhouse.exe").exists():
        refused = clean.run(command)
        assert refused.returncode == 1
        assert "run its setup again" in refused.stderr + refused.stdout
    assert clean.run(setups[NEW], "/S").returncode == 0
    assert not mark.exists()
    assert clean.run(clean.installed / "bin/poolhouse.exe").returncode == 0


def test_a_killed_installation_can_be_uninstalled(clean: Windows, setups: dict[str, Path]) -> None:
    before = clean.files()
    kill_when(clean, setups[OLD], (clean.installed / "python").exists)
    clean.uninstall()
    left = {name for name in clean.files() - before if "/Temp/" not in name}  # what NSIS itself had no time to delete
    assert left == set()


def test_data_stays_unless_its_removal_is_asked_for(clean: Windows, setups: dict[str, Path]) -> None:
    chat = clean.local / "poolhouse" / "chats" / "öffentlich.json"
    chat.parent.mkdir(parents=True)
    chat.write_text("{}", "utf-8")
    clean.run(setups[OLD], "/S")
    clean.uninstall()
    assert chat.exists()
    clean.run(setups[OLD], "/S")
    clean.uninstall("/DATA")
    assert not chat.parent.parent.exists()


def test_files_of_others_in_the_folder_stay(clean: Windows, setups: dict[str, Path]) -> None:
    clean.run(setups[OLD], "/S")
    other = clean.installed / "mine.txt"
    other.write_text("mine", "utf-8")
    clean.uninstall()
    assert other.read_text("utf-8") == "mine"
    assert [path.name for path in clean.installed.iterdir()] == ["mine.txt"]


def test_a_full_disk_is_said_before_anything_is_written(
    clean: Windows, setups: dict[str, Path], tmp_path: Path
) -> None:
    disk, drive = tmp_path / "disk", clean.folder / "dosdevices" / "e:"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(disk)], check=False)
    if mounted.returncode != 0:
        pytest.skip("needs root, to make a small disk")
    try:
        drive.symlink_to(disk)
        assert clean.run(setups[OLD], "/S", r"/D=E:\Poolhouse").returncode == 2
        assert clean.said().startswith("Poolhouse needs ")
        assert "on drive E: and 20 MB are free" in clean.said()
        assert list(disk.iterdir()) == []
        assert clean.value(UNINSTALL, "DisplayVersion") == ""
    finally:
        drive.unlink(missing_ok=True)
        subprocess.run(["umount", str(disk)], check=True)


def test_the_same_payload_gives_the_same_bytes(setups: dict[str, Path], tmp_path: Path) -> None:
    again = setup_program.pack(small_payload(tmp_path / "layers", OLD), stand_in=True)
    try:
        assert file_hash(again) == file_hash(setups[OLD])
    finally:
        again.unlink()
