"""Tests of the payload for Windows that need neither Wine nor a compiler."""

from __future__ import annotations

import re
import struct
import sys
from pathlib import Path

import pytest

from installers.payload import qt_parts
from installers.payload.libraries_layer import LOCK
from installers.windows import engine, libraries, python, setup_program, starters
from scripts.setup_errors import Trouble

PINNED = re.compile(r"^([a-z0-9-]+)==(\S+)", re.MULTILINE)


def pins(lock: str) -> dict[str, str]:
    return dict(PINNED.findall(lock))


def test_the_lock_is_reduced_to_what_pip_would_choose_on_windows() -> None:
    chosen = libraries.for_windows(LOCK.read_text("utf-8"))
    names = pins(chosen)
    assert {"colorama", "pywin32", "pywin32-ctypes", "numpy", "pyside6-essentials"} <= set(names)
    assert not {"jeepney", "secretstorage"} & set(names)
    assert ";" not in chosen
    assert names["numpy"] == "2.5.4"  # the lock has another one for older versions of Python
    blocks = re.split(r"^(?=[a-z0-9])", chosen, flags=re.MULTILINE)
    assert all("--hash=sha256:" in block for block in blocks if block.strip())


def test_the_lines_of_a_package_that_windows_does_not_have_go_with_it() -> None:
    lock = (
        "one==1.0 \\\n    --hash=sha256:aa\ntwo==2.0 ; sys_platform == 'linux' \\\n    --hash=sha256:bb \\\n"
        "    --hash=sha256:cc\nthree==3.0 ; os_name == 'nt' \\\n    --hash=sha256:dd\n"
    )
    assert libraries.for_windows(lock) == "one==1.0 \\\n    --hash=sha256:aa\nthree==3.0 \\\n    --hash=sha256:dd\n"


def test_without_python_for_windows_the_build_says_what_to_put_where(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(python, "FILES", tmp_path)
    with pytest.raises(Trouble) as refused:
        python.official()
    assert python.FILE in str(refused.value)
    assert python.SHA256 in str(refused.value)
    assert str(tmp_path) in str(refused.value)
    (tmp_path / python.FILE).write_bytes(b"another file")
    with pytest.raises(Trouble, match="is not the expected file"):
        python.official()


def test_the_variants_are_those_of_the_engine_for_linux() -> None:
    listed = {name.removeprefix("ggml-cpu-").removesuffix(".dll") for name in engine.LIBRARIES if "-cpu-" in name}
    assert listed == set(engine.VARIANTS)
    assert {"haswell", "x64", "zen4"} <= listed
    assert len(listed) == 14


def test_all_qt_modules_of_linux_are_shipped_and_windows_own_plugins() -> None:
    from installers.windows import qt_files

    assert qt_files.PLUGINS["platforms"] == ("qoffscreen", "qwindows")
    assert qt_files.PLUGINS["imageformats"] == qt_parts.PLUGINS["imageformats"]


def test_files_are_installed_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b/two.txt", "a.txt", "b/one.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x", "utf-8")
    assert setup_program.script_of_files(tmp_path).splitlines() == [
        'SetOutPath "$INSTDIR"', f'File "{tmp_path}/a.txt"',
        'SetOutPath "$INSTDIR\\b"', f'File "{tmp_path}/b/one.txt"', f'File "{tmp_path}/b/two.txt"',
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["x" * 200, "a$b", "a:b"])
def test_a_name_that_windows_or_nsis_would_not_take_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("x", "utf-8")
    with pytest.raises(ValueError, match="cannot be the name of a file here"):
        setup_program.script_of_files(tmp_path)


def test_every_text_of_the_setup_program_is_in_both_languages() -> None:
    texts = setup_program.TEXTS.read_text("utf-8")
    names = re.findall(r"^LangString (\w+) \$\{LANG_(ENGLISH|GERMAN)\}", texts, re.MULTILINE)
    english, german = ({name for name, language in names if language == code} for code in ("ENGLISH", "GERMAN"))
    assert english == german
    script = setup_program.SCRIPT.read_text("utf-8")
    assert set(re.findall(r"\$\(([A-Z_]+)\)", script)) == english


def test_the_setup_program_changes_no_setting_of_the_network() -> None:
    script = setup_program.SCRIPT.read_text("utf-8")
    ran = re.findall(r"^\s*(?:nsExec::\w+|Exec\w*) (.+)$", script, re.MULTILINE)
    assert ran
    assert not [command for command in ran if "firewall" in command.lower() or "netsh" in command.lower()]
    assert "RequestExecutionLevel user" in script


@pytest.mark.skipif(sys.platform != "linux", reason="drawn on Linux")
def test_the_icon_has_every_size(tmp_path: Path) -> None:
    icon = starters.icon_file(tmp_path)
    _, kind, count = struct.unpack_from("<HHH", icon)
    assert (kind, count) == (1, len(starters.ICON_SIZES))
    for index, size in enumerate(starters.ICON_SIZES):
        n_bytes, offset = struct.unpack_from("<II", icon, 6 + 16 * index + 8)
        picture = icon[offset : offset + n_bytes]
        assert picture[16:24] == size.to_bytes(4, "big") * 2


def test_versions_are_written_as_windows_counts_them() -> None:
    assert starters.four_numbers("0.1.0") == "0.1.0.0"
    assert starters.four_numbers("1.2") == "1.2.0.0"
