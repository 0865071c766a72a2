"""Tests of the payload for Windows that need neither Wine nor a compiler."""

from __future__ import annotations

import re
import shutil
import struct
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from installers.payload import components, qt_parts
from installers.payload.fetched import debian_files
from installers.payload.libraries_layer import LOCK
from installers.payload.places import FILES, LAYERS, PACKAGE_LAYERS
from installers.windows import (
    cross,
    engine,
    libraries,
    payload,
    python,
    python_terms,
    qt_files,
    setup_program,
    starters,
)
from scripts.setup_errors import Trouble

OF_WINDOWS = re.compile(  # libraries that every Windows 10 has since version 1809
    r"(api-ms-win-.+|advapi32|authz|bcrypt|bcryptprimitives|cfgmgr32|comctl32|comdlg32|credui|crypt32|d2d1|d3d11|d3d12"
    r"|d3d9|d3dcompiler_47|dnsapi|dwmapi|dwrite|dxgi|gdi32|icuuc|imm32|iphlpapi|kernel32|ktmw32|loadperf|lz32|mpr|msimg32"
    r"|mswsock|msvcrt|ncrypt|netapi32|ntdll|ntdsapi|odbc32|ole32|oleacc|oleaut32|pdh|powrprof|propsys|psapi|rasapi32"
    r"|rpcrt4|secur32|setupapi|sfc|shcore|shell32|shlwapi|ucrtbase|uiautomationcore|urlmon|user32|userenv|uxtheme|version"
    r"|winhttp|wininet|winmm|winspool|ws2_32|wtsapi32)\.(dll|drv)"
)
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


@pytest.mark.skipif(sys.platform != "linux", reason="reads the engine for Linux")
def test_the_variants_are_those_of_the_engine_for_linux() -> None:
    spec = find_spec("llama_cpp")
    assert spec is not None
    assert spec.origin is not None
    on_linux = {
        path.stem.removeprefix("libggml-cpu-") for path in Path(spec.origin).parent.glob("lib/libggml-cpu-*.so")
    }
    assert set(engine.VARIANTS) == on_linux


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    """The stand-in for Python for Windows."""
    if not (FILES / python.STAND_IN_FILE).exists():
        pytest.skip("needs the stand-in: `python -m installers windows --stand-in`")
    folder, scratch = tmp_path / "python", tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()
    python.build(folder, scratch, stand_in=True)
    return folder


@pytest.mark.skipif(not shutil.which(cross.OBJDUMP), reason="needs MinGW-w64")
def test_only_what_is_used_of_qt_is_shipped_and_what_that_needs(tmp_path: Path, stand_in: Path) -> None:
    qt = tmp_path / "PySide6"
    plugins = [f"plugins/{kind}/{name}.dll" for kind, names in qt_files.PLUGINS.items() for name in names]
    shipped = [
        *qt_parts.OWN_FILES, *qt_files.OWN_LIBRARIES, *(f"{name}.pyd" for name in qt_parts.imported_modules()),
        "QtDBus.pyd", *plugins, "translations/qtbase_de.qm", "translations/qtbase_en.qm",
    ]  # fmt: skip
    for name in (*shipped, "python313.dll", "QtWebEngineCore.pyd", "Qt6Quick.dll", "translations/qtbase_fr.qm"):
        (qt / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(stand_in / "select.pyd", qt / name)  # which needs python313.dll
    qt_files.prune(qt)
    left = {path.relative_to(qt).as_posix() for path in qt.rglob("*") if path.is_file()}
    assert left == {*shipped, "python313.dll"}
    assert "plugins/platforms/qwindows.dll" in left


def test_what_microsoft_and_others_made_of_python_is_listed(stand_in: Path) -> None:
    (made,) = payload.microsoft({"python": stand_in})
    assert (made.version, made.license) == ("14.42.34226.3", payload.MICROSOFT)
    listed = {component.name: component.version for component in payload._python(stand_in, stand_in=True)}
    assert listed == {
        "CPython for Windows": "3.13.2", "OpenSSL (in CPython)": "3.0.15",
        "libffi (in CPython)": "as in CPython 3.13.2",
        "SQLite (in CPython)": "3.45.3", "XZ (in CPython)": "as in CPython 3.13.2", "bzip2 (in CPython)": "1.0.8",
        "Expat (in CPython)": "2.6.4", "zlib (in CPython)": "1.3.1", "mpdecimal (in CPython)": "4.0.0",
    }  # fmt: skip
    assert payload.MICROSOFT.encode().partition(b"Microsoft")[1] in (stand_in / "licenses/python.txt").read_bytes()
    assert "libgomp" not in components.license_list([made])


def test_each_library_finds_what_it_needs_on_a_windows_without_anything_else() -> None:
    layers = {name: sorted(LAYERS.glob(f"windows-{name}-*"))[-1:] for name in ("python", *PACKAGE_LAYERS)}
    if not all(layers.values()) or not shutil.which(cross.OBJDUMP):
        pytest.skip("needs the layers: `python -m installers windows --stand-in`")
    (base,) = layers.pop("python")
    own = {path.name.lower() for path in base.iterdir()}
    lacking = {}
    for (packages,) in layers.values():
        for path in sorted(file for kind in ("*.pyd", "*.dll") for file in packages.rglob(kind)):
            beside = {other.name.lower() for folder in places(path, packages) for other in folder.glob("*.dll")}
            missing = {name for name in cross.needed(path) - own - beside if not OF_WINDOWS.fullmatch(name)}
            if missing:
                lacking[path.relative_to(packages).as_posix()] = missing
    assert lacking == {}


def places(path: Path, packages: Path) -> list[Path]:
    """Return the folders in which Windows looks for what a file needs: its own, and those that its package adds."""
    package = packages / path.relative_to(packages).parts[0]
    return [path.parent, package, packages / f"{package.name}.libs", packages / "shiboken6"]


def test_files_are_installed_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b/two.txt", "a.txt", "b/one.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x", "utf-8")
    assert setup_program.script_of_files(tmp_path).splitlines() == [
        'SetOutPath "$INSTDIR\\poolhouse.new"', f'File "{tmp_path}/a.txt"',
        'SetOutPath "$INSTDIR\\poolhouse.new\\b"', f'File "{tmp_path}/b/one.txt"', f'File "{tmp_path}/b/two.txt"',
    ]  # fmt: skip


def test_the_list_names_files_then_folders_from_the_inside_out(tmp_path: Path) -> None:
    for name in ("a/b/two.py", "a/one.txt", "c.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x", "utf-8")
    assert setup_program.list_of_files(tmp_path).splitlines() == [
        r"F a\b\two.py", r"F a\one.txt", "F c.txt", r"C a\b", r"D a\b", "D a",
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


@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="needs dpkg")
def test_each_library_inside_python_has_its_terms_beside_it(tmp_path: Path, stand_in: Path) -> None:
    words = {
        "bzip2": "Julian R Seward", "expat": "Clark Cooper", "libffi": "Red Hat", "mpdecimal": "Stefan Krah",
        "openssl": "Apache License", "sqlite": "public domain", "xz": "public domain", "zlib": "Mark Adler",
    }  # fmt: skip
    if not all((FILES / debian_files()[name].file).exists() for name in python_terms.PACKAGES.values()):
        pytest.skip("needs Debian's files: `python -m installers`")
    python_terms.add(stand_in, tmp_path)
    for name, holder in words.items():
        assert holder in (stand_in / "licenses" / f"{name}.txt").read_text("utf-8"), name
    inside = {name.lower() for name, *_ in payload.INSIDE_PYTHON}
    assert inside | {"openssl"} == set(words)
