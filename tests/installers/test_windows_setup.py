"""The setup program for Windows, run under Wine: install, update, refuse, repair and remove."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.machine.versions.tree_hash import file_hash
from installers.windows import setup_program
from installers.windows.setup_program import NEW_FOLDER, SWITCH_MARK
from tests.installers.wine import APPROVED, ENVIRONMENT, LOCAL, RUN, UNINSTALL, Windows, small_payload, windows

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
    """The setup programs of two versions, made outside dist/, where one of the same name may lie."""
    folder, made = tmp_path_factory.mktemp("setup"), {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(setup_program, "WORK", folder / "work")
        patch.setattr(setup_program, "RESULTS", folder)
        for version in (OLD, NEW):
            made[version] = setup_program.pack(small_payload(folder / "layers", version), stand_in=True)
    return made


@pytest.fixture(scope="module")
def computer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Windows]:
    with windows(tmp_path_factory.mktemp("wine") / "prefix") as made:
        yield made


@pytest.fixture
def clean(computer: Windows) -> Iterator[Windows]:
    """A Windows without Poolhouse."""
    yield computer
    if (computer.installed / "uninstall.exe").exists():
        computer.uninstall("/DATA")
    shutil.rmtree(computer.installed, ignore_errors=True)
    computer.forget()


def test_it_installs_for_one_user_and_leaves_nothing_behind(clean: Windows, setups: dict[str, Path]) -> None:
    clean.run("reg", "add", ENVIRONMENT, "/v", "Path", "/d", r"C:\tools", "/f")
    before, registry = clean.files(), clean.registry()
    assert clean.run(setups[OLD], "/S").returncode == 0, clean.said()
    names = {path.name for path in clean.installed.iterdir()}
    assert names == {
        "Poolhouse.exe", "app", "bin", "engine", "files.txt", "installed.json", "libraries", "models", "numpy",
        "python", "qt", "sbom.cdx.json", "third-party-licenses.txt", "uninstall.exe",
    }  # fmt: skip
    assert (clean.installed / "app/app/__pycache__/__main__.cpython-313.pyc").exists()
    assert clean.link.exists()
    assert clean.value(UNINSTALL, "DisplayVersion") == OLD
    assert clean.value(UNINSTALL, "InstallLocation") == rf"{LOCAL}\Programs\Poolhouse"
    assert clean.value(ENVIRONMENT, "Path").endswith(rf"{LOCAL}\Programs\Poolhouse\bin")
    assert clean.value(RUN, "Poolhouse") == ""
    clean.uninstall()
    assert clean.files() == before
    assert clean.registry() == registry


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
    stale, mine = clean.installed / "app/app/only_0_1_0.py", clean.installed / "models" / "mine.gguf"
    assert stale.exists()
    mine.write_text("mine", "utf-8")
    assert clean.run(setups[NEW], "/S").returncode == 0
    assert not stale.exists()
    assert mine.read_text("utf-8") == "mine"
    mine.unlink()
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


def answer(computer: Windows) -> str:
    """Return what the installed command says, which is its words."""
    return computer.run(computer.installed / "bin/poolhouse.exe", "hello").stdout.strip()


def trees(folder: Path) -> dict[str, bytes]:
    """Return all files in a folder with what they hold, without compiled files."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_an_update_killed_while_it_unpacks_leaves_the_old_version(clean: Windows, setups: dict[str, Path]) -> None:
    clean.run(setups[OLD], "/S")
    before = trees(clean.installed)
    kill_when(clean, setups[NEW], (clean.installed / NEW_FOLDER / "engine").exists)
    assert (clean.installed / NEW_FOLDER).exists(), "it was killed too late"
    assert {name: text for name, text in trees(clean.installed).items() if not name.startswith(NEW_FOLDER)} == before
    assert answer(clean) == ascii(["hello"])
    assert clean.value(UNINSTALL, "DisplayVersion") == OLD
    assert clean.run(setups[NEW], "/S").returncode == 0
    assert not (clean.installed / NEW_FOLDER).exists()
    assert (clean.installed / "models/models ä.txt").read_text("utf-8") == NEW


def test_an_update_killed_while_it_switches_is_ended_by_the_next_start(clean: Windows, setups: dict[str, Path]) -> None:
    clean.run(setups[OLD], "/S")
    kill_when(clean, setups[NEW], (clean.installed / SWITCH_MARK).exists)
    assert answer(clean) == ascii(["hello"])  # the mark comes and goes fast: here, the kill may also have been too late
    assert not (clean.installed / SWITCH_MARK).exists()
    assert (clean.installed / "models/models ä.txt").read_text("utf-8") == NEW
    assert clean.value(UNINSTALL, "DisplayVersion") == NEW


PARTS = (  # in the order in which they are moved
    "bin/poolhouse.exe", "installed.json", "sbom.cdx.json", "third-party-licenses.txt", "qt", "python", "numpy",
    "models", "libraries", "engine", "app", "uninstall.exe", "gone.txt", "files.txt", "Poolhouse.exe",
)  # fmt: skip


def test_a_switch_broken_off_between_any_two_moves_is_ended_by_the_next_start(
    clean: Windows, setups: dict[str, Path]
) -> None:
    """Each state is made here, and whatever command is there ends the switch."""
    clean.run(setups[NEW], "/S")
    new = clean.path(r"C:\new")
    shutil.copytree(clean.installed, new)
    clean.uninstall()
    clean.run(setups[OLD], "/S")
    old = clean.path(r"C:\old")
    shutil.copytree(clean.installed, old)
    (old / "gone.txt").write_text("only the old version has this", "utf-8")
    listed = (old / "files.txt").read_text("utf-16-le")
    (old / "files.txt").write_text(listed + "F gone.txt\n", "utf-16-le", newline="")
    (old / "models" / "mine.gguf").write_text("mine", "utf-8")
    expected = {**trees(new), "models/mine.gguf": b"mine"}
    moves = [(part, half) for part in PARTS for half in ("old", "new")]
    for n_moves in range(len(moves)):
        shutil.rmtree(clean.installed)
        shutil.copytree(old, clean.installed)
        staged, away = clean.installed / NEW_FOLDER, clean.installed / "poolhouse.old"
        shutil.copytree(new, staged)
        (clean.installed / SWITCH_MARK).write_text(NEW, "ascii")
        for part, half in moves[:n_moves]:
            source, target = (clean.installed, away) if half == "old" else (staged, clean.installed)
            if (source / part).exists():
                (target / part).parent.mkdir(parents=True, exist_ok=True)
                (source / part).rename(target / part)
        if not (clean.installed / PARTS[0]).exists():
            clean.run(clean.installed / PARTS[-1])
        assert answer(clean) == ascii(["hello"]), moves[:n_moves]
        files = trees(clean.installed)
        for part in (PARTS[0], PARTS[-1]):
            files.pop(f"poolhouse.old/{part}", None)  # it ran while it was replaced
        assert files == expected, moves[:n_moves]
        assert clean.value(UNINSTALL, "DisplayVersion") == NEW
    for folder in (new, old):
        shutil.rmtree(folder)


def test_an_update_that_cannot_replace_a_part_puts_the_old_version_back(
    clean: Windows, setups: dict[str, Path]
) -> None:
    clean.run(setups[OLD], "/S")
    before = trees(clean.installed)
    shutil.copytree(clean.installed / "python", clean.path(r"C:\holder"))
    held = rf"{LOCAL}\Programs\Poolhouse\sbom.cdx.json"  # Wine would move a folder in which a file is open
    code = f"import time; f = open({held!a}); print(1, flush=True); time.sleep(100)"
    with clean.start(r"C:\holder\python.exe", "-c", code) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline().strip() == "1"
        assert clean.run(setups[NEW], "/S").returncode == 2
        holder.kill()
    clean.wait_for_server()
    shutil.rmtree(clean.path(r"C:\holder"))
    assert clean.said().startswith(f"Another program uses {held}, so it could not be removed or replaced.")
    assert trees(clean.installed) == before
    assert clean.value(UNINSTALL, "DisplayVersion") == OLD
    assert answer(clean) == ascii(["hello"])


def test_a_removal_that_was_broken_off_says_so_and_the_setup_repairs_it(
    clean: Windows, setups: dict[str, Path]
) -> None:
    clean.run(setups[OLD], "/S")
    (clean.installed / "installing").write_text(OLD, "ascii")  # as the uninstaller does before it removes anything
    (clean.installed / "app/app/__main__.py").unlink()
    refused = clean.run(clean.installed / "bin/poolhouse.exe")
    assert refused.returncode == 1
    assert "run its setup again" in refused.stderr + refused.stdout
    assert clean.run(setups[OLD], "/S").returncode == 0
    assert answer(clean) == ascii(["hello"])


def test_a_killed_installation_can_be_uninstalled(clean: Windows, setups: dict[str, Path]) -> None:
    before = clean.files()
    kill_when(clean, setups[OLD], (clean.installed / NEW_FOLDER / "python").exists)
    clean.uninstall()
    left = {name for name in clean.files() - before if "/Temp" not in name}  # what NSIS itself had no time to delete
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
    names = ("mine.txt", "models/mine.gguf", "app/app/mine.py", "bin/mine.exe")
    for name in names:
        (clean.installed / name).write_text("mine", "utf-8")
    clean.uninstall()
    left = {path.relative_to(clean.installed).as_posix() for path in clean.installed.rglob("*") if path.is_file()}
    assert left == set(names)


def test_a_folder_with_other_files_is_refused_and_left_alone(clean: Windows, setups: dict[str, Path]) -> None:
    model = clean.path(r"C:\AI\models\mine.gguf")
    model.parent.mkdir(parents=True)
    model.write_text("mine", "utf-8")
    registry = clean.registry()
    assert clean.run(setups[OLD], "/S", r"/D=C:\AI").returncode == 2
    assert clean.said() == (
        r"The folder C:\AI holds other files, so nothing was changed; Poolhouse needs a folder of its own."
    )
    assert [path.name for path in clean.path(r"C:\AI").rglob("*")] == ["models", "mine.gguf"]
    assert clean.registry() == registry


def test_a_copied_uninstaller_removes_nothing(clean: Windows, setups: dict[str, Path]) -> None:
    clean.run(setups[OLD], "/S")
    before = clean.files()
    folder = clean.path(r"C:\copied\models")
    folder.mkdir(parents=True)
    shutil.copyfile(clean.installed / "uninstall.exe", folder.parent / "uninstall.exe")
    assert clean.run(folder.parent / "uninstall.exe", "/S", r"_?=C:\copied").returncode == 2
    assert clean.said().startswith(rf"Poolhouse is installed in {LOCAL}\Programs\Poolhouse, not here")
    assert folder.exists()
    assert before <= clean.files()


def test_an_update_keeps_the_choices_of_before(clean: Windows, setups: dict[str, Path]) -> None:
    clean.run("reg", "add", ENVIRONMENT, "/v", "Path", "/d", r"C:\tools", "/f")
    clean.run(setups[OLD], "/S", "/NOPATH")
    own = rf"{PROGRAM} --hidden --home D:\house"
    clean.run("reg", "add", RUN, "/v", "Poolhouse", "/d", own, "/f")
    clean.run(setups[NEW], "/S")
    assert clean.value(ENVIRONMENT, "Path") == r"C:\tools"
    assert clean.value(RUN, "Poolhouse") == own


def test_a_start_turned_off_elsewhere_is_on_again_if_asked_for(clean: Windows, setups: dict[str, Path]) -> None:
    clean.run("reg", "add", APPROVED, "/v", "Poolhouse", "/t", "REG_BINARY", "/d", "03", "/f")
    clean.run(setups[OLD], "/S", "/AUTOSTART")
    assert clean.value(APPROVED, "Poolhouse") == ""


def test_data_that_cannot_be_removed_is_said_and_poolhouse_stays(clean: Windows, setups: dict[str, Path]) -> None:
    refuses = clean.local / "poolhouse" / "refuse"
    refuses.parent.mkdir(parents=True)
    refuses.write_text("", "utf-8")
    clean.run(setups[OLD], "/S")
    before, registry = clean.files(), clean.registry()
    said = clean.refuse_to_uninstall("/DATA")
    refuses.unlink()
    assert said.startswith("Not all data could be deleted, so Poolhouse was not removed.")
    assert before - clean.files() == {str(refuses.relative_to(clean.folder))}
    assert clean.registry() == registry
    assert clean.run(clean.installed / "bin/poolhouse.exe").returncode == 0


def test_what_another_program_holds_is_said_and_can_be_removed_later(clean: Windows, setups: dict[str, Path]) -> None:
    clean.run(setups[OLD], "/S")
    shutil.copytree(clean.installed / "python", clean.path(r"C:\holder"))
    held = rf"{LOCAL}\Programs\Poolhouse\models\models ä.txt"
    code = f"import time; f = open({held!a}); print(1, flush=True); time.sleep(60)"
    with clean.start(r"C:\holder\python.exe", "-c", code) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline().strip() == "1"
        said = clean.refuse_to_uninstall()
        holder.kill()
    clean.wait_for_server()
    assert said.startswith(f"Another program uses {held}, so it could not be removed or replaced.")
    assert clean.value(UNINSTALL, "DisplayVersion") == OLD
    clean.uninstall()
    assert not clean.installed.exists()
    assert clean.value(UNINSTALL, "DisplayVersion") == ""


def test_two_at_a_time_are_refused(clean: Windows, setups: dict[str, Path]) -> None:
    with clean.start(setups[OLD], "/S") as first:
        while first.poll() is None and not (clean.installed / NEW_FOLDER).exists():
            time.sleep(0.001)
        assert clean.run(setups[OLD], "/S").returncode == 2
        assert clean.said().startswith("Poolhouse is being installed or removed already")
        assert first.wait(120) == 0


def test_an_unwritable_folder_is_said(clean: Windows, setups: dict[str, Path]) -> None:
    clean.installed.mkdir(parents=True)
    (clean.installed / "files.txt").write_text("", "utf-16-le")
    (clean.installed / NEW_FOLDER).write_text("")  # a file cannot become a folder, even for root
    registry = clean.registry()
    assert clean.run(setups[OLD], "/S").returncode == 2
    assert clean.said().startswith(rf"Nothing could be written to {LOCAL}\Programs\Poolhouse")
    assert clean.registry() == registry


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


def test_the_same_payload_gives_the_same_bytes_from_another_folder(
    setups: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    payload = small_payload(tmp_path / "layers", OLD)
    monkeypatch.setattr(setup_program, "WORK", tmp_path / "another folder")
    monkeypatch.setattr(setup_program, "RESULTS", tmp_path)
    assert file_hash(setup_program.pack(payload, stand_in=True)) == file_hash(setups[OLD])


def test_the_command_for_the_firewall_can_be_copied(computer: Windows, tmp_path: Path) -> None:
    """The script's own function, in a program without its pages."""
    script = setup_program.SCRIPT.read_text("utf-8").replace("${UN}", "")
    function = re.search(r"^Function CopyCommand$.*?^FunctionEnd$", script, re.MULTILINE | re.DOTALL)
    assert function
    command = "$p = 'C:\\it''s \"me\"\\python.exe', 'r0 p t'; Get-NetFirewallRule"
    quoted = command.replace("$", "$$").replace('"', '$\\"')
    probe, program = tmp_path / "probe.nsi", tmp_path / "probe.exe"
    probe.write_text(
        f'''Unicode true
!include LogicLib.nsh
OutFile "{program}"
SilentInstall silent
RequestExecutionLevel user
Var Command
{function[0]}
Section
  StrCpy $Command "{quoted}"
  Push 0
  Call CopyCommand
  System::Call 'user32::OpenClipboard(p 0)'
  System::Call 'user32::GetClipboardData(i 13) p .r1'
  System::Call '*$1(&w1024 .r2)'
  FileOpen $3 "C:\\copied.txt" w
  FileWriteUTF16LE /BOM $3 $2
  FileClose $3
SectionEnd
''',
        "utf-8",
    )
    subprocess.run(["makensis", "-V2", "-INPUTCHARSET", "UTF8", "-XTarget amd64-unicode", str(probe)], check=True)
    assert computer.run(program).returncode == 0
    assert computer.path(r"C:\copied.txt").read_text("utf-16") == command
