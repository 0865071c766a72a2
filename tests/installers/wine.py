"""A Windows for tests: a folder of Wine with a user whose name is not ASCII, and a small payload for setup programs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.machine.versions.tree_hash import tree_bytes, tree_hash
from installers.payload import trees
from installers.payload.payload import Layer, Payload
from installers.payload.places import LAYER_NAMES
from installers.windows import python

WINES_OWN = re.compile(r"\\Shell Folders\]|\\Software\\Wine\\Temporary System Parameters")
OUTPUT = "cp437"  # what programs write to a pipe, in Wine with the locale C
EPOCH = 1_700_000_000
USER = "Jürgen Großmüller"
HOME = rf"C:\users\{USER}"
LOCAL = rf"{HOME}\AppData\Local"
FOLDERS = {"Local AppData": LOCAL, "AppData": rf"{HOME}\AppData\Roaming", "Desktop": rf"{HOME}\Desktop",
           "Programs": rf"{HOME}\AppData\Roaming\Microsoft\Windows\Start Menu\Programs"}  # fmt: skip
SHELL_FOLDERS = r"HKCU\Software\Microsoft\Windows\CurrentVersion\Explorer\User Shell Folders"
UNINSTALL = r"HKCU\Software\Microsoft\Windows\CurrentVersion\Uninstall\Poolhouse"
RUN = r"HKCU\Software\Microsoft\Windows\CurrentVersion\Run"
APPROVED = r"HKCU\Software\Microsoft\Windows\CurrentVersion\Explorer\StartupApproved\Run"
ENVIRONMENT = "HKCU\\Environment"
SAID = "poolhouse-setup.txt"
VALUES = ((RUN, "Poolhouse"), (APPROVED, "Poolhouse"), (ENVIRONMENT, "Path"))
FORGET = "\r\n\r\n".join([
    "Windows Registry Editor Version 5.00",
    *(f"[{key}]\r\n\"{name}\"=-" for key, name in VALUES),
    f"[-{UNINSTALL}]\r\n",
]).replace("HKCU", "HKEY_CURRENT_USER")  # fmt: skip
PROGRAM = """import os, shutil, sys, time
print(ascii(sys.argv[1:]), flush=True)
if sys.argv[1:2] == ["wait"]:
    time.sleep(60)
home = os.path.join(os.environ["LOCALAPPDATA"], "poolhouse")
if sys.argv[1:2] == ["erase"]:
    if os.path.exists(os.path.join(home, "refuse")):
        sys.exit(1)
    if sys.argv[2:] == ["--yes", "--keep-other-folders"]:
        shutil.rmtree(home, ignore_errors=True)
sys.exit(7 if sys.argv[1:2] == ["code"] else 0)
"""


class Windows:
    """A folder of Wine, which its programs see as drive C."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **{name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")},
            "WINEPREFIX": str(folder),
            "WINEDEBUG": "-all",
            # Wine 8 ends a program that asks WMI for the version of Windows, as Python's module platform does.
            "WINEDLLOVERRIDES": "mscoree,mshtml,wbemprox=",
            "LC_ALL": "C.UTF-8",
        }

    @property
    def local(self) -> Path:
        """The folder in which this user's programs and data lie."""
        return self.path(LOCAL)

    @property
    def installed(self) -> Path:
        return self.local / "Programs" / "Poolhouse"

    @property
    def link(self) -> Path:
        return self.path(FOLDERS["Programs"]) / "Poolhouse.lnk"

    def path(self, name: str) -> Path:
        """Return where a file of drive C lies for us."""
        return self.folder / "drive_c" / name.removeprefix("C:\\").replace("\\", "/")

    def run(self, *words: str | Path, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """Run a program of Windows to its end."""
        return subprocess.run(
            ["wine", *map(str, words)], env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
            encoding=OUTPUT, check=False, timeout=timeout,
        )  # fmt: skip

    def start(self, *words: str | Path) -> subprocess.Popen[str]:
        """Start a program of Windows."""
        return subprocess.Popen(
            ["wine", *map(str, words)], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, encoding=OUTPUT,
        )  # fmt: skip

    def value(self, key: str, name: str) -> str:
        """Return a value of the registry, or ""."""
        for line in self.run("reg", "query", key, "/v", name).stdout.splitlines():
            words = line.split(None, 2)
            if len(words) == 3 and words[0] == name:
                return words[2].strip()
        return ""

    def files(self) -> set[str]:
        """Return the files and folders of the user and of the programs."""
        places = (self.path(HOME), self.folder / "drive_c" / "users" / "Public")
        return {str(path.relative_to(self.folder)) for place in places for path in place.rglob("*")}

    def registry(self) -> str:
        """Return what the registry holds of this user, without the folders of the shell and what is only Wine's."""
        name = "registry.reg"
        self.run("reg", "export", "HKCU", f"C:\\{name}", "/y")
        file = self.path(name)
        text = file.read_text("utf-16")
        file.unlink()
        keys = text.replace("\r\n", "\n").split("\n\n")
        return "\n\n".join(key for key in keys if not WINES_OWN.search(key.partition("\n")[0]))

    def forget(self) -> None:
        """Remove from the registry what an installation writes there."""
        file = self.path(r"C:\forget.reg")
        file.write_text(FORGET, "utf-16")
        self.run("regedit", "/S", r"C:\forget.reg")
        file.unlink()

    def said(self) -> str:
        """Return the sentence with which a silent setup program refused."""
        sentences = list((self.folder / "drive_c" / "users").rglob(SAID))
        return sentences[0].read_text("utf-16") if sentences else ""

    def uninstall(self, *words: str) -> None:
        """Run the uninstaller, which goes on after the program that was started has ended."""
        program = self.installed / "uninstall.exe"
        self.run(program, "/S", *words)
        deadline = time.monotonic() + 60
        while program.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.wait_for_server()

    def refuse_to_uninstall(self, *words: str) -> str:
        """Run the uninstaller, which is to refuse, and return its sentence."""
        for sentence in (self.folder / "drive_c" / "users").rglob(SAID):
            sentence.unlink()
        self.run(self.installed / "uninstall.exe", "/S", *words)
        deadline = time.monotonic() + 60
        while not self.said() and time.monotonic() < deadline:
            time.sleep(0.1)
        return self.said()

    def wait_for_server(self) -> None:
        """Wait until no program of Windows runs."""
        subprocess.run(["wineserver", "-w"], env=self.environment, check=False, timeout=120)


@contextmanager
def windows(folder: Path) -> Iterator[Windows]:
    """A Windows 10 in `folder`. Debian's Wine makes a Windows 7 otherwise."""
    made = Windows(folder)
    made.run("wineboot", "-i")
    made.run("winecfg", "-v", "win10")
    for name, path in FOLDERS.items():
        made.path(path).mkdir(parents=True, exist_ok=True)
        made.run("reg", "add", SHELL_FOLDERS, "/v", name, "/d", path, "/f")
    (made.local / "Programs").mkdir()  # as Windows has, and the key as well
    made.run("reg", "add", UNINSTALL.rpartition("\\")[0], "/f")
    made.wait_for_server()
    try:
        yield made
    finally:
        subprocess.run(["wineserver", "-k"], env=made.environment, check=False)


def small_payload(folder: Path, version: str) -> Payload:
    """Return a payload with Python and a program of a few lines in place of the app, so that it installs in seconds."""
    shutil.rmtree(folder, ignore_errors=True)
    layers = []
    for name in LAYER_NAMES:
        layer = folder / name
        layer.mkdir(parents=True)
        if name == "python":
            scratch = folder / "scratch"
            scratch.mkdir()
            python.build(layer, scratch, stand_in=True)
        elif name == "app":
            (layer / "app").mkdir()
            (layer / "app" / "__init__.py").write_text(f'__version__ = "{version}"\n', "utf-8")
            (layer / "app" / "__main__.py").write_text(PROGRAM, "utf-8")
            (layer / "app" / f"only_{version.replace('.', '_')}.py").write_text("", "utf-8")
        else:
            (layer / f"{name} ä.txt").write_text(version, "utf-8")
        trees.normalize(layer, EPOCH)
        layers.append(Layer(name, layer, tree_hash(layer), tree_bytes(layer)))
    return Payload(version, "c" * 40, EPOCH, tuple(layers), "{}", "terms\n")
