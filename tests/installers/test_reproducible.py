"""The same commit gives the same bytes, whoever builds it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.machine.versions.tree_hash import file_hash
from installers.payload.places import PROJECT, RESULTS

pytestmark = [pytest.mark.installers, pytest.mark.timeout(1800)]


def results() -> dict[str, str]:
    """The hash of each artifact of this version."""
    return {path.name: file_hash(path) for path in sorted(RESULTS.iterdir()) if "0.2.0" not in path.name}


@pytest.mark.skipif(sys.platform != "linux", reason="the installers for Linux")
def test_a_second_build_gives_the_same_bytes(tmp_path: Path) -> None:
    before = results()
    if not before:
        pytest.skip("needs a first build: `make installers-test` makes it")
    environment = {
        **os.environ,
        "TZ": "Pacific/Auckland",
        "LC_ALL": "C",
        "PYTHONHASHSEED": "7",
        "TMPDIR": str(tmp_path),
    }
    windows = " windows --stand-in" if any(name.endswith("-setup.exe") for name in before) else ""
    words = f'umask 077; exec "$0" -m installers deb appimage{windows} --rebuild'
    command = ["sh", "-c", words, sys.executable]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert results() == before
