"""Start at sign-in: what each system is given, and what is read back from it, whoever changed it."""

from __future__ import annotations

import plistlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from app.core.errors import Refused
from app.machine import autostart
from app.machine.installation import Installation, window_starter
from app.machine.paths import Home

COMMAND = ["/opt/poolhouse/poolhouse", "--hidden"]
GNOME_OFF = """\
[Desktop Entry]
Type=Application
Name=Poolhouse
Exec=/opt/poolhouse/poolhouse --hidden
X-GNOME-Autostart-enabled=false
"""
KDE_OFF = "[Desktop Entry]\nExec = /opt/poolhouse/poolhouse --hidden\nHidden = true\n"
LISTING_OFF = """\
	disabled services = {
		"com.apple.ManagedClientAgent.enrollagent" => disabled
		"org.poolhouse.Poolhouse" => disabled
	}
	login item associations = {
	}
"""  # macOS 13 and later
LISTING_OLD = 'disabled services = {\n\t"org.poolhouse.Poolhouse" => true\n}\n'
APPROVED_ON = bytes.fromhex("020000000000000000000000")
APPROVED_OFF = bytes.fromhex("03000000b8a9a1c1f0d4d901")  # with the time it was turned off


def test_the_desktop_entry_goes_and_comes(tmp_path: Path) -> None:
    entry = autostart.DesktopEntry(tmp_path / "config" / "autostart")
    home = Home.at(tmp_path / "home")
    assert not autostart.state(entry).on
    assert autostart.set_enabled(True, home, entry) == autostart.Autostart(True, entry.where)
    text = Path(entry.where).read_text()
    assert f"--hidden --home {home.root}" in text
    assert "Terminal=false" in text
    assert not autostart.set_enabled(False, home, entry).on
    assert not list((tmp_path / "config" / "autostart").iterdir())
    assert not autostart.set_enabled(False, home, entry).on  # once more harms nothing


@pytest.mark.parametrize(
    ("text", "on"),
    [
        (autostart.entry_text(COMMAND), True),
        (GNOME_OFF, False),
        (KDE_OFF, False),
        ("[Desktop Entry]\nType=Application\n", False),
        ("", False),
    ],
)
def test_a_desktop_may_have_turned_it_off(text: str, on: bool, tmp_path: Path) -> None:
    entry = autostart.DesktopEntry(tmp_path, COMMAND.count)
    Path(entry.where).write_text(text)
    assert autostart.state(entry).on is on


def test_one_whose_program_is_gone_starts_nothing(tmp_path: Path) -> None:
    """This is the case for an AppImage that a newer one replaced."""
    image = tmp_path / "My Apps" / "Poolhouse 50%.AppImage"
    entry = autostart.DesktopEntry(tmp_path)
    Path(entry.where).write_text(autostart.entry_text([str(image), "--hidden"]))
    assert not autostart.state(entry).on
    image.parent.mkdir()
    image.touch(0o700)
    assert autostart.state(entry).on
    Path(entry.where).write_text('[Desktop Entry]\nExec="poolhouse\n')
    assert not autostart.state(entry).on


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (["/usr/bin/poolhouse", "--hidden"], "/usr/bin/poolhouse --hidden"),
        (["/people/eva/My Apps/p", "a"], '"/people/eva/My Apps/p" a'),
        (["/x/50%", "$HOME"], r'/x/50%% "\\$HOME"'),
        (['/x/a"b\\c'], r'"/x/a\\"b\\\\c"'),
    ],
)
def test_arguments_are_quoted_as_desktops_read_them(command: list[str], line: str) -> None:
    assert autostart.exec_line(command) == line
    assert autostart.program_of(f"[Desktop Entry]\nExec={line}\n") == command[0]


@pytest.mark.parametrize(
    ("text", "folder"),
    [("", "/people/eva/.config/autostart"), ("/cfg", "/cfg/autostart"), ("rel", "/people/eva/.config/autostart")],
)
def test_where_entries_lie(text: str, folder: str) -> None:
    environment = {"XDG_CONFIG_HOME": text} if text else {}
    assert autostart.desktop_folder(environment, Path("/people/eva")) == Path(folder)


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "autostart").write_text("a file in the way")
    entry = autostart.DesktopEntry(tmp_path / "autostart")
    with pytest.raises(Refused) as caught:
        autostart.set_enabled(True, Home.at(tmp_path), entry)
    assert caught.value.reason.code == "autostart_failed"


def test_the_launch_agent_goes_and_comes(tmp_path: Path) -> None:
    ran: list[Sequence[str]] = []

    def run(command: Sequence[str]) -> str:
        ran.append(command)
        return ""

    agent = autostart.LaunchAgent(tmp_path, run)
    assert not agent.is_on()
    agent.write(COMMAND)
    data = plistlib.loads(Path(agent.where).read_bytes())
    assert data["ProgramArguments"] == COMMAND
    assert data["RunAtLoad"] is True
    assert "KeepAlive" not in data  # Quit is Quit
    assert agent.is_on()
    assert [command[1] for command in ran] == ["enable", "print-disabled"]
    agent.remove()
    assert not agent.is_on()


@pytest.mark.parametrize(
    ("listing", "off"),
    [(LISTING_OFF, True), (LISTING_OLD, True), (LISTING_OFF.replace("disabled\n\t}", "enabled\n\t}"), False),
     ("", False), (None, False)],
)  # fmt: skip
def test_macos_settings_may_have_turned_it_off(listing: str | None, off: bool) -> None:
    assert autostart.is_disabled(listing) is off


@pytest.mark.parametrize("content", [b"", b"<plist", b"bplist00garbage", b"<plist><array/></plist>"])
def test_a_broken_agent_does_not_start(content: bytes) -> None:
    assert not autostart.agent_is_on(content)


@pytest.mark.parametrize(
    ("line", "approval", "on"),
    [
        ("C:\\p.exe --hidden", None, True),
        ("C:\\p.exe --hidden", APPROVED_ON, True),
        ("C:\\p.exe --hidden", APPROVED_OFF, False),
        ("", None, False),
        (None, APPROVED_ON, False),
    ],
)
def test_the_task_manager_may_have_turned_it_off(line: str | None, approval: bytes | None, on: bool) -> None:
    assert autostart.is_started(line, approval) is on


def test_windows_gets_one_quoted_line() -> None:
    command = [r"C:\Users\Eva M\Poolhouse\poolhouse.exe", "--hidden"]
    line = autostart.run_line(command)
    assert line == r'"C:\Users\Eva M\Poolhouse\poolhouse.exe" --hidden'
    assert autostart.RunKey.where.startswith("HKEY_CURRENT_USER\\Software\\Microsoft")


def test_the_program_is_the_one_a_person_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing: dict[str, str] = {}
    beside = Path(sys.executable).parent / "poolhouse"
    assert autostart.program(nothing.get, lambda path: path == beside) == str(beside)
    ours = {"APPIMAGE": "/a/P.AppImage", "APPDIR": str(beside.parent)}
    assert autostart.program(ours.get, lambda _: False) == "/a/P.AppImage"
    for other in ({"APPIMAGE": "/a/Other.AppImage"}, ours | {"APPDIR": "/tmp/.mount_other"}):
        assert autostart.program(other.get, lambda path: path == beside) == str(beside)
    with pytest.raises(Refused):
        autostart.program(nothing.get, lambda _: False)
    installed = Installation("1.0.0", "", "deb", "/usr/bin/poolhouse", {})
    monkeypatch.setattr(autostart, "installation", lambda: installed)
    assert autostart.program(nothing.get, lambda _: False) == "/usr/bin/poolhouse"
    monkeypatch.setattr(autostart, "installation", lambda: Installation("1.0.0", "", "windows", "", {}))
    starter = window_starter()
    assert starter.name == "Poolhouse.exe"
    assert autostart.program(nothing.get, lambda path: path == starter) == str(starter)


@pytest.mark.skipif(sys.platform != "linux", reason="desktop entries are of Linux")
def test_what_starts_is_our_own_program() -> None:
    first, *rest = autostart.command(Home.at())
    assert rest == ["--hidden"]
    done = subprocess.run([first, "--version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Poolhouse" in done.stdout
