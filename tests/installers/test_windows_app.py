"""The whole setup program for Windows under Wine: all files arrive, the command line runs, and nothing stays."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import __version__
from app.machine.versions.tree_hash import tree_hash
from installers.payload.places import LAYER_NAMES, RESULTS
from installers.windows import cross
from tests.installers.wine import OUTPUT, Windows, windows

SETUP = RESULTS / f"poolhouse-{__version__}-test-only-setup.exe"
LACKING = [name for name in ("wine", cross.C) if not shutil.which(name)]
pytestmark = [
    pytest.mark.installers,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(sys.platform != "linux" or bool(LACKING), reason=f"needs {', '.join(LACKING) or 'Linux'}"),
]


@pytest.fixture(scope="module")
def computer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Windows]:
    """A Windows with Poolhouse, which is removed at the end."""
    if not SETUP.exists():
        pytest.skip("needs `python -m installers windows --stand-in`")
    with windows(tmp_path_factory.mktemp("wine") / "prefix") as made:
        before = made.files()
        done = made.run(SETUP, "/S", timeout=1200)
        assert done.returncode == 0, made.said()
        yield made
        made.uninstall("/DATA")
        assert made.files() == before


def test_every_layer_arrives_as_it_was_built(computer: Windows, tmp_path: Path) -> None:
    listed = json.loads((computer.installed / "installed.json").read_text("utf-8"))["layers"]
    assert set(listed) == set(LAYER_NAMES)
    for name, hashed in listed.items():
        copy = tmp_path / name
        shutil.copytree(computer.installed / name, copy, ignore=shutil.ignore_patterns("__pycache__"))
        for path in copy.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)  # Windows has no modes
        assert tree_hash(copy) == hashed, name


def test_the_app_was_compiled_so_that_it_starts_fast(computer: Windows) -> None:
    for name in ("app/app/cli", "qt/PySide6", "numpy/numpy", "engine/llama_cpp"):
        compiled = list((computer.installed / name / "__pycache__").glob("*.cpython-313.pyc"))
        assert len(compiled) == len(list((computer.installed / name).glob("*.py")))


def test_the_command_line_runs(computer: Windows) -> None:
    command = computer.installed / "bin" / "poolhouse.exe"
    helped = computer.run(command, "--help")
    assert helped.returncode == 0
    assert "Add a model file to this computer's models." in helped.stdout
    assert computer.run(command, "lod", "x").returncode == 2
    switched = computer.run(command, "autostart", "on")
    assert switched.returncode == 0, switched.stderr
    assert "Poolhouse.exe" in computer.value(r"HKCU\Software\Microsoft\Windows\CurrentVersion\Run", "Poolhouse")
    assert computer.run(command, "autostart", "off").returncode == 0


def test_the_app_finds_itself_and_nothing_of_the_environment(computer: Windows, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__init__.py").write_text("raise SystemExit('another app')\n", "utf-8")
    words = "import app, sys; print(ascii(app.__file__), app.__version__, sys.flags.isolated)"
    computer.environment["PYTHONPATH"] = f"Z:{tmp_path}"
    done = computer.run(computer.installed / "python" / "python.exe", "-c", words)
    del computer.environment["PYTHONPATH"]
    assert done.returncode == 0, done.stderr
    assert rf"Poolhouse\\app\\app\\__init__.py' {__version__} 1" in done.stdout


def test_all_data_is_erased_by_the_command(computer: Windows) -> None:
    settings = computer.local / "poolhouse" / "settings.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("{}", "utf-8")
    done = computer.run(computer.installed / "bin" / "poolhouse.exe", "erase", "--yes")
    assert done.returncode == 0, done.stderr
    assert "deleted in" in done.stdout.encode(OUTPUT).decode("utf-8", "replace")
    assert not settings.exists()
