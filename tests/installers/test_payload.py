"""Tests of the payload: the parts of Qt, the files by which a desktop knows the app, and the reproducible trees."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from app import __version__
from app.machine.versions.tree_hash import tree_hash
from installers.linux import deb, desktop, running_copies
from installers.payload import components, fetched, python_layer, qt_parts, trees
from installers.payload.places import PROJECT

linux = pytest.mark.skipif(sys.platform != "linux", reason="the installers for Linux")
EPOCH = 1_700_000_000


def test_every_qt_module_that_the_app_imports_is_shipped_and_no_other() -> None:
    assert qt_parts.imported_modules() == set(qt_parts.MODULES)


def test_every_pinned_file_has_a_hash_and_is_used() -> None:
    files = fetched.debian_files()
    assert set(files) == {*python_layer.PACKAGES, *python_layer.LIBRARY_PACKAGES}
    assert all(re.fullmatch(r"[0-9a-f]{64}", file.sha256) for file in files.values())
    assert all(file.source and file.file.startswith(f"{name}_") for name, file in files.items())


@linux
@pytest.mark.skipif(not shutil.which("appstreamcli"), reason="needs appstreamcli")
def test_appstream_accepts_the_description(tmp_path: Path) -> None:
    path = tmp_path / f"{desktop.ID}.metainfo.xml"
    path.write_text(desktop.metainfo(__version__, EPOCH), "utf-8")
    done = subprocess.run(
        ["appstreamcli", "validate", "--no-net", str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@linux
@pytest.mark.skipif(not shutil.which("desktop-file-validate"), reason="needs desktop-file-utils")
def test_the_menu_entry_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "poolhouse.desktop"
    path.write_text(desktop.DESKTOP_ENTRY, "utf-8")
    done = subprocess.run(["desktop-file-validate", str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@linux
@pytest.mark.skipif(not shutil.which("man"), reason="needs man")
def test_the_man_page_has_every_command_and_no_mistakes(tmp_path: Path) -> None:
    path = tmp_path / "poolhouse.1"
    path.write_text(desktop.man_page(__version__, EPOCH), "utf-8")
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "100"}
    command = ["man", "--warnings", "-l", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    for words in ("poolhouse pair", "poolhouse engine add", "poolhouse erase", "--max-tokens N"):
        assert words in done.stdout


@linux
def test_the_icons_have_the_sizes_of_their_folders(tmp_path: Path) -> None:
    desktop.write_icons(tmp_path)
    for size in desktop.ICON_SIZES:
        picture = (tmp_path / f"{size}x{size}/apps/poolhouse.png").read_bytes()
        assert picture[16:24] == size.to_bytes(4, "big") * 2  # the header of a PNG file


def test_the_scripts_of_the_package_are_valid_and_complete(tmp_path: Path) -> None:
    for script in deb.scripts(__version__).values():
        assert not re.search(r"\{[a-z]+\}", script)
        path = tmp_path / "script"
        path.write_text(script, "utf-8")
        subprocess.run(["sh", "-n", str(path)], check=True)


def test_dates_and_modes_do_not_depend_on_the_builder(tmp_path: Path) -> None:
    made = []
    for name, mask in (("one", 0o077), ("two", 0o002)):
        before = os.umask(mask)
        folder = tmp_path / name
        (folder / "deep" / "empty").mkdir(parents=True)
        (folder / "deep" / "program").write_text("#!/bin/sh\n", "utf-8")
        (folder / "deep" / "program").chmod(0o700 if mask == 0o077 else 0o775)
        (folder / "library.so.1").write_bytes(b"x")
        (folder / "library.so.1").chmod(0o755)
        (folder / "link").symlink_to("library.so.1")
        os.umask(before)
        trees.normalize(folder, EPOCH)
        made.append(folder)
    assert tree_hash(made[0]) == tree_hash(made[1])
    for folder in made:
        assert (folder / "library.so.1").stat().st_mode & 0o777 == 0o644
        assert (folder / "deep/program").stat().st_mode & 0o777 == 0o755
        assert not (folder / "deep/empty").exists()
        assert {int(path.lstat().st_mtime) for path in folder.rglob("*")} == {EPOCH}


def test_a_layer_for_windows_has_no_programs(tmp_path: Path) -> None:
    """Its hash would otherwise be another one after it was installed."""
    program = tmp_path / "program.exe"
    program.write_text("x", "utf-8")
    program.chmod(0o755)
    trees.normalize(tmp_path, EPOCH, has_programs=False)
    assert program.stat().st_mode & 0o777 == 0o644


def test_a_changed_byte_mode_or_link_changes_the_hash(tmp_path: Path) -> None:
    path, link = tmp_path / "a", tmp_path / "b"
    path.write_text("x", "utf-8")
    link.symlink_to("a")
    seen = {tree_hash(tmp_path)}
    path.write_text("y", "utf-8")
    seen.add(tree_hash(tmp_path))
    path.chmod(0o755)
    seen.add(tree_hash(tmp_path))
    link.unlink()
    link.symlink_to("c")
    seen.add(tree_hash(tmp_path))
    assert len(seen) == 4


def test_compiled_files_are_the_same_every_time(tmp_path: Path) -> None:
    text = "NAMES = frozenset({'a', 'b', 'c'})\ndef f(x):\n    return x in {'one', 'two', 'three'}\n"
    hashes = set()
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "module.py").write_text(text, "utf-8")
        trees.compile_all(Path(sys.executable), folder, "shown")
        hashes.add(tree_hash(folder))
        assert list(folder.glob("__pycache__/*.pyc"))
    assert len(hashes) == 1


@linux
def test_only_copies_that_a_person_started_are_started_again() -> None:
    words = [sys.executable, "-c", "import time; time.sleep(60)", "-m", "app", "--hidden"]
    own = {name: value for name, value in os.environ.items() if name != running_copies.BY_WINDOW}
    for environment, restarted in (({}, ["--hidden"]), ({running_copies.BY_WINDOW: "1"}, None)):
        sleeper = subprocess.Popen(words, env={**own, **environment})
        try:
            while "--hidden" not in Path(f"/proc/{sleeper.pid}/cmdline").read_text("utf-8"):
                time.sleep(0.01)  # it has not become the program yet
            copy = running_copies.describe(sleeper.pid)
        finally:
            sleeper.kill()
            sleeper.wait()
        assert (copy.words if copy else None) == restarted


def test_the_project_names_the_target_of_the_long_tests() -> None:
    made = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))
    markers = made["tool"]["pytest"]["ini_options"]["markers"]
    assert any(marker.startswith("installers:") for marker in markers)


@pytest.mark.skipif(not components.AUDIT_PYTHON.exists(), reason="`make audit` makes the environment of the tool")
def test_the_list_of_components_is_the_same_every_time() -> None:
    made = [
        components.Component("zlib1g", "1.2", "Zlib", "pkg:deb/debian/zlib1g@1.2", "python/licenses", sha256="0" * 64)
    ]
    first, second = (components.sbom(made, "1.0.0", EPOCH, "identity") for _ in range(2))
    assert first == second
    document = json.loads(first)
    assert (document["bomFormat"], document["metadata"]["component"]["version"]) == ("CycloneDX", "1.0.0")
    (component,) = document["components"]
    assert (component["name"], component["licenses"][0]["license"]["id"]) == ("zlib1g", "Zlib")
    assert "Zlib\n    python/licenses\n" in components.license_list(made)
