"""The owner's running programs and installed games, identified by their executables. The functions block briefly.

Games are found in the desktop's menu entries (freedesktop.org's Desktop Entry Specification) and in the manifests of
Steam's libraries.
"""

from __future__ import annotations

import configparser
import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import psutil

from app.core.lending.policy import MAX_PROGRAM_CHARACTERS, executable

MAX_GAMES = 200
MAX_FILES, MAX_DEPTH = 2_000, 3  # limits on the search of a game's folder
MAX_ENTRY_BYTES = 256 << 10
# Launchers, which also run while no game does, and programs that can run anything
LAUNCHERS = frozenset(
    ("steam", "steam-runtime", "flatpak", "snap", "lutris", "heroic", "bottles", "wine", "wine64",
     "sh", "bash", "env", "python3", "java", "xdg-open")
)  # fmt: skip
NOT_THE_GAME = re.compile(
    r"unins|setup|install|crash|redist|vcredist|dxsetup|launch|helper|report|dotnet", re.IGNORECASE
)
NO_GAMES = ("Proton", "Steam Linux Runtime", "Steamworks")
ELF = b"\x7fELF"


@dataclass(frozen=True, slots=True)
class Game:
    """A game with its name and its executable, in the form returned by `policy.executable`."""

    name: str
    program: str


def installed_games(menus: Iterable[Path] | None = None, steams: Iterable[Path] | None = None) -> list[Game]:
    """Return the installed games, sorted by name.

    menus: the folders of menu entries. steams: the folders of Steam. None means the system's usual folders.
    """
    games: dict[str, Game] = {}
    home = Path.home()
    for game in (
        *_of_menus(menus if menus is not None else _menus(home)),
        *_of_steam(steams if steams is not None else _steams(home)),
    ):
        fits = 0 < len(game.program) <= MAX_PROGRAM_CHARACTERS and game.program.isprintable()
        if fits and game.name.isprintable() and game.program not in LAUNCHERS:
            games.setdefault(game.program, game)
    return sorted(games.values(), key=lambda game: (game.name.casefold(), game.program))[:MAX_GAMES]


def _menus(home: Path) -> list[Path]:
    if sys.platform != "linux":
        return []
    shared = os.environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"
    places = [home / ".local/share", *map(Path, shared.split(":")), Path("/var/lib/flatpak/exports/share")]
    return [place / "applications" for place in places]


def _steams(home: Path) -> list[Path]:
    if sys.platform == "win32":
        return [Path(os.environ.get("PROGRAMFILES(X86)", "C:\\Program Files (x86)")) / "Steam"]
    if sys.platform == "darwin":
        return []
    flatpak = home / ".var/app/com.valvesoftware.Steam/.local/share/Steam"
    return [home / ".local/share/Steam", home / ".steam/steam", flatpak]


def _of_menus(folders: Iterable[Path]) -> Iterator[Game]:
    for folder in folders:
        for file in sorted(_files(folder, "*.desktop")):
            entry = configparser.ConfigParser(interpolation=None, strict=False, delimiters="=")
            try:
                entry.read_string(_text(file))
                fields = entry["Desktop Entry"]
            except (configparser.Error, KeyError):
                continue
            if "Game" in fields.get("Categories", "").split(";") and fields.get("NoDisplay") != "true":
                yield Game(fields.get("Name", ""), _program_of(fields.get("Exec", "")))


def _program_of(command: str) -> str:
    """Return the program that a menu entry's command starts. For Flatpak, this is the program inside the sandbox."""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    words = [word for word in words if "=" not in word or word.startswith("--command=")]
    boxed = next((word.partition("=")[2] for word in words if word.startswith("--command=")), "")
    rest = words[1:] if words[:1] == ["env"] else words
    return executable(boxed or (rest[0] if rest else ""))


def _of_steam(folders: Iterable[Path]) -> Iterator[Game]:
    libraries = dict.fromkeys(library.resolve() for steam in folders for library in (steam, *_libraries(steam)))
    for library in libraries:
        apps = library / "steamapps"
        for manifest in sorted(_files(apps, "appmanifest_*.acf")):
            fields = dict(re.findall(r'"(name|installdir)"\s+"([^"]*)"', _text(manifest)))
            name, folder = fields.get("name", ""), fields.get("installdir", "")
            if name and folder and not name.startswith(NO_GAMES) and Path(folder).name == folder:
                yield Game(name, _main_program(apps / "common" / folder, name))


def _libraries(steam: Path) -> list[Path]:
    listing = _text(steam / "steamapps" / "libraryfolders.vdf")
    return [Path(path.replace("\\\\", "\\")) for path in re.findall(r'"path"\s+"([^"]*)"', listing)]


def _main_program(folder: Path, name: str) -> str:
    """Return the executable with the same name as the game, otherwise the largest one, or "" if there is none."""
    programs = [file for file in islice(_walk(folder), MAX_FILES) if _is_program(file)]
    game_names = {_letters(name), _letters(folder.name)}
    best = max(programs, key=lambda program: (_letters(program.stem) in game_names, _size(program)), default=None)
    return executable(best.name) if best is not None else ""


def _walk(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        if len(Path(place).relative_to(folder).parts) >= MAX_DEPTH:
            folders.clear()
        yield from (Path(place, file) for file in files)


def _is_program(file: Path) -> bool:
    if NOT_THE_GAME.search(file.stem):
        return False
    if file.suffix.lower() == ".exe":
        return True
    if file.suffix not in ("", ".x86_64", ".x86") or not os.access(file, os.X_OK):
        return False
    try:
        with file.open("rb") as opened:
            return opened.read(len(ELF)) == ELF
    except OSError:
        return False


def _letters(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _files(folder: Path, pattern: str) -> list[Path]:
    try:
        return list(folder.glob(pattern))
    except OSError:
        return []


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(MAX_ENTRY_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


MAX_PROGRAMS = 60


IN_MEMORY = "memfd:"  # Linux's prefix for a program that runs from memory, without a file


SYSTEM = ("/usr/lib/systemd", "/usr/libexec", "/usr/sbin", "/sbin", "/System/", "C:\\Windows\\")


@dataclass(frozen=True, slots=True)
class Process:
    """A process, its executable and its memory use."""

    pid: int
    path: str  # of the executable; "" for processes of the system
    bytes: int


def running_programs() -> list[str]:
    """Return the names of the owner's running programs other than Poolhouse, in order of decreasing memory use."""
    return program_names(_processes(), _own_process_ids())


def program_names(processes: Iterable[Process], ours: frozenset[int]) -> list[str]:
    """Return the names of the programs, in order of decreasing memory use.

    System services and the processes in `ours` are omitted.
    """
    bytes_by_name: dict[str, int] = {}
    for process in processes:
        name = executable(process.path)
        fits = 0 < len(name) <= MAX_PROGRAM_CHARACTERS and name.isprintable()
        # other names would mean nothing to the user
        is_named = "(deleted)" not in process.path and not name.startswith(IN_MEMORY)
        if fits and is_named and process.pid not in ours and not process.path.startswith(SYSTEM):
            bytes_by_name[name] = bytes_by_name.get(name, 0) + process.bytes
    return sorted(bytes_by_name, key=lambda name: (-bytes_by_name[name], name))[:MAX_PROGRAMS]


def _processes() -> Iterable[Process]:
    """Yield this user's processes whose executables are visible."""
    me = psutil.Process().username()
    for process in psutil.process_iter(["pid", "username", "exe", "memory_info"]):
        info = process.info
        if info["username"] == me and info["exe"]:
            memory = info["memory_info"]
            yield Process(info["pid"], info["exe"], memory.rss if memory else 0)


def _own_process_ids() -> frozenset[int]:
    """Return the ids of this process, its workers, and the window that started it."""
    this = psutil.Process()
    try:
        children = this.children(recursive=True)
        above = [process for process in this.parents() if _same_program(process)]
    except psutil.Error:
        children, above = [], []
    return frozenset((os.getpid(), *(process.pid for process in (*children, *above))))


def _same_program(process: psutil.Process) -> bool:
    try:
        return Path(process.exe()) == Path(psutil.Process().exe())
    except psutil.Error:
        return False
