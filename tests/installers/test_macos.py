"""The app for macOS, as far as it can be proved without a Mac: description, icon, lock, layout and program."""

from __future__ import annotations

import io
import os
import plistlib
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from app import __version__
from app.network.discovery.announcement import SERVICE
from installers.macos import description, icon, wheels
from installers.macos.app_bundle import SCRIPTS
from installers.payload.libraries_layer import LOCK
from installers.payload.places import LAYER_NAMES
from installers.payload.python_layer import IMPORTS

FOLDER = Path(description.__file__).parent
EPOCH = 1_700_000_000
linux = pytest.mark.skipif(sys.platform != "linux", reason="a stand-in for Python is compiled on Linux")

STAND_IN = """#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int Py_BytesMain(int argc, char **argv) {
    for (int n = 0; n < argc; n++) printf("%s\\n", argv[n]);
    printf("%d\\n", getpid());
    fflush(stdout);
    if (argc > 3 && argv[3][0] == 'w') pause();
    return 7;
}
"""


@pytest.fixture(scope="module")
def pictures() -> dict[int, bytes]:
    return icon.drawn()


def test_the_description_asks_for_the_local_network_in_both_languages(tmp_path: Path) -> None:
    made = tmp_path / "Poolhouse.app"
    description.write(made, __version__, EPOCH, b"icon")
    with (made / "Contents/Info.plist").open("rb") as file:
        info = plistlib.load(file)
    assert info["CFBundleShortVersionString"] == __version__
    assert re.fullmatch(r"\d+", info["CFBundleVersion"])
    assert f"{info['NSBonjourServices'][0]}.local." == SERVICE
    assert (made / "Contents/Resources" / info["CFBundleIconFile"]).read_bytes() == b"icon"
    for language in info["CFBundleLocalizations"]:
        text = (made / f"Contents/Resources/{language}.lproj/InfoPlist.strings").read_text("utf-8")
        assert re.fullmatch(r'"NSLocalNetworkUsageDescription" = "[^"\n]+";\n', text)
    assert plistlib.loads(description.entitlements()) == {"com.apple.security.cs.disable-library-validation": True}


def test_python_imports_only_from_the_layers(tmp_path: Path) -> None:
    made = tmp_path / "Poolhouse.app"
    description.write(made, __version__, EPOCH, b"icon")
    paths = (made / description.PYTHON_PATHS).read_text("utf-8").splitlines()
    folders = [os.path.normpath(made / description.PYTHON_PATHS / ".." / path) for path in paths]
    layers = {Path(folder).relative_to(made / description.LAYERS).parts[0] for folder in folders}
    assert layers == {*LAYER_NAMES} - {"models"}
    assert len(paths) == len(IMPORTS)


def test_the_icon_has_every_size_and_the_same_bytes_each_time(pictures: dict[int, bytes]) -> None:
    made = icon.icns(pictures)
    assert made == icon.icns(pictures)
    with Image.open(io.BytesIO(made)) as opened:
        assert {width * scale for width, _, scale in opened.info["sizes"]} == {size for _, size in icon.KINDS}
        opened.load()
        assert opened.size == (1024, 1024)
        assert opened.getchannel("A").getextrema()[1] == 255  # something is drawn


def test_the_lock_for_macos_has_its_packages_with_hashes_and_no_others() -> None:
    kept = wheels.lock_for_macos(LOCK.read_text("utf-8"))
    names = re.findall(r"^([\w.-]+)==", kept, re.MULTILINE)
    assert {"pyside6-essentials", "aiohttp", "numpy", "keyring"} <= {name.lower() for name in names}
    assert not {"jeepney", "secretstorage", "pywin32", "pywin32-ctypes"} & {name.lower() for name in names}
    assert ";" not in kept
    blocks = re.split(r"\n(?=\S)", kept.strip())
    assert all("--hash=sha256:" in block for block in blocks)


@linux
@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
def test_the_program_runs_python_inside_itself(tmp_path: Path) -> None:
    contents = tmp_path / "a folder" / "Poolhouse.app" / "Contents"
    library = contents / "Resources/python/lib/libpython3.13.so"
    for place in (library.parent, contents / "MacOS"):
        place.mkdir(parents=True)
    program = contents / "MacOS" / "Poolhouse"
    warnings = ["-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *warnings, "-o", str(program), str(FOLDER / "launcher.c"), "-ldl"], check=True)
    without = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert without.returncode == 1
    assert re.fullmatch(r"Poolhouse could not start: .*\. Move it to .*again\.\n", without.stderr)
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
    subprocess.run(command, input=STAND_IN, text=True, check=True)
    link = tmp_path / "poolhouse"  # as on the PATH
    link.symlink_to(program)
    for start in (program, link):
        done = subprocess.run([start, "-psn_0_123", "ask", "ä b"], capture_output=True, text=True, check=False)
        *words, _ = done.stdout.splitlines()
        assert done.returncode == 7
        assert words == [str(contents / "Resources/python/bin/python3.13"), "-m", "app", "ask", "ä b"]
    with subprocess.Popen([program, "wait"], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        pid = [running.stdout.readline() for _ in range(5)][-1]
        assert int(pid) == running.pid  # no other process, or macOS would ask for "python"
        running.send_signal(signal.SIGTERM)
        assert running.wait(10) == -signal.SIGTERM


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
@pytest.mark.parametrize("name", [name for name in SCRIPTS if name.endswith(".sh")])
def test_a_script_for_a_mac_is_valid_and_says_that_nobody_has_run_it(name: str) -> None:
    subprocess.run(["bash", "-n", str(FOLDER / name)], check=True)
    text = (FOLDER / name).read_text("utf-8")
    assert "set -euo pipefail" in text
    assert "NOT VERIFIED" in text
