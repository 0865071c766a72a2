"""Tests of installed packages: exactly the locks, and never the package that loads pickles from disk."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
LOCKS = ("run", "engine", "build", "dev", "guide", "fuzz", "families", "real", "cuda13", "cuda12", "wine")
PIN = re.compile(r"^([a-z0-9-]+)==([^ ;\\]+)(.*?)\\?$", re.MULTILINE)


def locked(name: str) -> dict[str, set[str]]:
    """Package -> its versions (one a Python version) in a lock."""
    pins: dict[str, set[str]] = {}
    for package, version, _ in PIN.findall(lock_text(name)):
        pins.setdefault(package, set()).add(version)
    return pins


def lock_text(name: str) -> str:
    return (PROJECT / "requirements" / f"{name}.txt").read_text("utf-8")


def wanted(name: str) -> list[str]:
    """Return the requirements of pyproject.toml, such as `aiohttp==3.14.5`."""
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))
    groups: dict[str, list[str]] = settings["dependency-groups"]
    dependencies: list[str] = settings["project"]["dependencies"] if name == "run" else groups[name]
    return dependencies


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_holds_what_is_asked_for(name: str) -> None:
    for requirement in wanted(name):
        package, version = requirement.partition(";")[0].strip().split("==")
        if package == "torch":
            continue  # by pip alone, see the Makefile
        assert version in locked(name).get(package.lower(), ()), f"{requirement}: run `make lock`"


@pytest.mark.parametrize("name", LOCKS)
def test_every_pin_has_a_hash(name: str) -> None:
    pins = re.split(r"^(?=[a-z0-9])", lock_text(name), flags=re.MULTILINE)
    assert all("--hash=sha256:" in pin for pin in pins if pin.strip())


def test_locks_that_share_an_environment_agree() -> None:
    run = locked("run")
    for other in (locked("dev"), locked("build")):
        for package, versions in other.items():
            assert versions <= run.get(package, versions), package


def test_diskcache_is_not_there() -> None:
    assert all("diskcache" not in locked(name) for name in LOCKS)
    assert PathFinder.find_spec("diskcache") is None  # the engine puts a stub into sys.modules


def test_backends_never_load_the_real_diskcache(tmp_path: Path) -> None:
    """Even where it is installed: no worker asks for it, and beside the binding's own class an empty module stands."""
    (tmp_path / "diskcache.py").write_text("raise SystemExit('the real diskcache was loaded')")
    code = (
        "import sys; from backends.llamacpp.binding import load, llama_class; load()\n"
        "print('diskcache' in sys.modules); llama_class()\n"
        "print(vars(sys.modules['diskcache']).get('Cache'))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["False", "None"]
