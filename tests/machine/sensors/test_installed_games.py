"""Installed games are found by the desktop's menu and by Steam's manifests, each with the executable that runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.machine.sensors.owner_programs import Game, installed_games


def entry(folder: Path, name: str, **result: str) -> None:
    lines = {"Type": "Application", "Name": name, "Categories": "Game;", **result}
    text = "[Desktop Entry]\n" + "".join(f"{key}={value}\n" for key, value in lines.items())
    (folder / f"{name}.desktop").write_text(text)


def program(path: Path, n_bytes: int = 10, head: bytes = b"\x7fELF") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(head + bytes(n_bytes))
    path.chmod(0o755)


def steam_game(library: Path, number: int, name: str, folder: str) -> Path:
    apps = library / "steamapps"
    apps.mkdir(parents=True, exist_ok=True)
    text = f'"AppState"\n{{\n "appid" "{number}"\n "name" "{name}"\n "installdir" "{folder}"\n}}\n'
    (apps / f"appmanifest_{number}.acf").write_text(text)
    return apps / "common" / folder


def test_games_of_the_menu(tmp_path: Path) -> None:
    entry(tmp_path, "Chess", Exec="/usr/games/gnome-chess %U")
    entry(tmp_path, "Boxed", Exec="/usr/bin/flatpak run --branch=stable --command=supertux2 org.x")
    entry(tmp_path, "With surroundings", Exec="env MESA=1 '/opt/my game/run.exe' --full")
    entry(tmp_path, "Steam", Exec="/usr/bin/steam %U", Categories="Network;Game;")
    entry(tmp_path, "By Steam", Exec="steam steam://rungameid/1")
    entry(tmp_path, "Writer", Exec="writer", Categories="Office;")
    entry(tmp_path, "Hidden", Exec="hidden", NoDisplay="true")
    entry(tmp_path, "Torn", Exec="'torn")
    (tmp_path / "odd.desktop").write_bytes(b"\xff\x00 no entry")
    assert installed_games([tmp_path, tmp_path / "none"], []) == [
        Game("Boxed", "supertux2"), Game("Chess", "gnome-chess"), Game("With surroundings", "run"),
    ]  # fmt: skip


def test_games_of_steam_are_the_executable_that_runs(tmp_path: Path) -> None:
    steam, other = tmp_path / "steam", tmp_path / "other disk"
    native = steam_game(steam, 1, "Fac Torio", "factorio")
    program(native / "bin" / "x64" / "factorio")
    program(native / "bin" / "larger", 5000)
    (steam / "steamapps" / "libraryfolders.vdf").write_text(f'"0" {{ "path" "{other}" }}')
    windows = steam_game(other, 2, "Deep", "deep")
    program(windows / "UnityCrashHandler64.exe", 9000, b"MZ")
    program(windows / "DeepGame.exe", 800, b"MZ")
    program(windows / "script", 99999, b"#!/b")
    program(windows / "a" / "b" / "c" / "d" / "Far.exe", 99999, b"MZ")
    program(steam_game(other, 3, "Proton 9.0", "Proton 9.0") / "proton.exe", 10, b"MZ")
    steam_game(other, 4, "Gone", "gone")
    steam_game(other, 5, "Elsewhere", "../..")
    assert installed_games([], [steam, tmp_path / "none"]) == [
        Game("Deep", "deepgame"), Game("Fac Torio", "factorio"),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["", "x" * 300, "two\nlines"])
def test_what_no_rule_can_name_is_left_out(tmp_path: Path, name: str) -> None:
    entry(tmp_path, "Odd", Exec=f"'{name}'")
    assert installed_games([tmp_path], []) == []


def test_what_is_installed_here() -> None:
    assert isinstance(installed_games(), list)
