"""The engine has the same bytes, in whichever folder it is compiled: proved on two kinds of processor."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from installers.payload.engine_layer import SOURCE_NAME, cmake_args
from installers.payload.places import WORK

pytestmark = [
    pytest.mark.installers,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(sys.platform != "linux", reason="the installers for Linux"),
]
TARGETS = ("ggml-base", "ggml-cpu-x64", "ggml-cpu-haswell")


def compiled(place: Path, archive: Path) -> dict[str, str]:
    """Compile parts of the engine below a folder as the installers do, and return the hash of each library."""
    place.mkdir(parents=True)
    shutil.unpack_archive(archive, place, filter="data")
    (source,) = place.iterdir()
    flag = f"-ffile-prefix-map={source}={SOURCE_NAME}"
    tools = Path(sys.executable).parent
    environment = {
        **os.environ, "CFLAGS": flag, "CXXFLAGS": flag, "GIT_CEILING_DIRECTORIES": str(place),
        "SOURCE_DATE_EPOCH": "0", "ZERO_AR_DATE": "1", "PATH": os.pathsep.join([str(tools), os.environ["PATH"]]),
    }  # fmt: skip
    work = place / "work"
    configure = ["cmake", "-G", "Ninja", "-S", str(source), "-B", str(work), "-DCMAKE_BUILD_TYPE=Release"]
    for command in ([*configure, *cmake_args().split()], ["ninja", "-C", str(work), *TARGETS]):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    libraries = sorted(path for path in (work / "bin").glob("*.so") if path.name.startswith("libggml-"))
    for path in libraries:
        subprocess.run(["strip", "--strip-unneeded", str(path)], check=True)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in libraries}


def test_two_folders_give_the_same_libraries(tmp_path: Path) -> None:
    archives = sorted((WORK / "source").glob("*.tar.gz"))
    if not archives:
        pytest.skip("needs the source of the engine: `make installers-test` fetches it")
    first = compiled(tmp_path / "one", archives[-1])
    second = compiled(tmp_path / "another-folder-with-a-longer-name" / "below", archives[-1])
    assert set(first) == {f"lib{target}.so" for target in TARGETS}
    assert first == second
