"""Engines from wheels: pip itself installs tiny ones from a folder and from an index on loopback."""

from __future__ import annotations

import asyncio
import base64
import functools
import hashlib
import http.server
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename

from app.core.errors import AppError, BadInput, Damaged, DoesNotFit, Unreachable
from app.decoding import decode
from app.machine.engine_packs import wheel_install
from app.machine.engine_packs.store import this_system
from app.machine.engine_packs.wheel_install import (
    KEPT,
    UNFINISHED,
    InstalledEngine,
    damage,
    delete_unfinished,
    install_engine,
    installed_engines,
    remove_engine,
)
from app.machine.engine_packs.wheels import EngineDownload, EngineWheels, Wheel, _fitting, downloads, wheels_file

FILL_BYTES = 700_000  # pip reports no progress of smaller files


def make_wheel(folder: Path, name: str, version: str = "1.0", text: str = "ANSWER = 42\n") -> Wheel:
    """Make a wheel with one module and a file of some size."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}/__init__.py": text.encode(),
        f"{name}/weights.bin": hashlib.shake_128(name.encode()).digest(FILL_BYTES),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},sha256={_digest(data)},{len(data)}\n" for path, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    path = folder / f"{name}-{version}-py3-none-any.whl"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for inner, data in files.items():
            archive.writestr(inner, data)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return Wheel(name, version, path.name, path.stat().st_size, sum(map(len, files.values())), sha256)


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    return tmp_path / "wheels"


@pytest.fixture
def offered(wheels: Path) -> EngineDownload:
    return EngineDownload("mlx", "1.0", [make_wheel(wheels, "tinyengine"), make_wheel(wheels, "tinyhelper")])


def install(offered: EngineDownload, folder: Path, wheels: str) -> list[int]:
    """Install an engine and return the progress; -1 marks that unpacking begins."""
    seen: list[int] = []
    asyncio.run(install_engine(offered, folder, wheels, seen.append, lambda: seen.append(-1)))
    return seen


def test_an_engine_is_installed_from_a_folder_and_removed(
    tmp_path: Path, wheels: Path, offered: EngineDownload
) -> None:
    folder = tmp_path / "added"
    assert -1 in install(offered, folder, str(wheels))
    assert (folder / "mlx" / "tinyengine" / "__init__.py").read_text() == "ANSWER = 42\n"
    assert installed_engines(folder) == {"mlx": InstalledEngine("mlx", "1.0", offered.unpacked_bytes)}
    assert damage(folder, "mlx") is None
    assert [path.name for path in folder.iterdir()] == ["mlx"]
    remove_engine(folder, "mlx")
    assert list(folder.iterdir()) == []
    with pytest.raises(BadInput, match="engine_not_installed"):
        remove_engine(folder, "mlx")


def test_a_users_own_settings_for_pip_do_not_lead_elsewhere(
    tmp_path: Path, wheels: Path, offered: EngineDownload, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "pip.conf"
    settings.write_text("[global]\nuser = true\nrequire-virtualenv = true\nno-cache-dir = true\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(settings))
    monkeypatch.setenv("PIP_QUIET", "2")
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    assert -1 in install(offered, tmp_path / "added", str(wheels))
    assert damage(tmp_path / "added", "mlx") is None


def test_a_newer_version_replaces_the_older_one(tmp_path: Path, wheels: Path, offered: EngineDownload) -> None:
    folder = tmp_path / "added"
    install(offered, folder, str(wheels))
    newer = EngineDownload("mlx", "2.0", [make_wheel(wheels, "tinyengine", "2.0", "ANSWER = 43\n")])
    install(newer, folder, str(wheels))
    assert installed_engines(folder)["mlx"].version == "2.0"
    assert not (folder / "mlx" / "tinyhelper").exists()
    assert [path.name for path in folder.iterdir()] == ["mlx"]


def test_a_file_with_another_hash_is_refused_and_the_older_version_stays(
    tmp_path: Path, wheels: Path, offered: EngineDownload
) -> None:
    folder = tmp_path / "added"
    install(offered, folder, str(wheels))
    make_wheel(wheels, "tinyengine", text="import os  # something else\n")
    with pytest.raises(Damaged, match="engine_wheel_changed"):
        install(offered, folder, str(wheels))
    assert (folder / "mlx" / "tinyengine" / "__init__.py").read_text() == "ANSWER = 42\n"
    assert [path.name for path in folder.iterdir()] == ["mlx"]


def test_missing_files_and_folders_are_named(tmp_path: Path, wheels: Path, offered: EngineDownload) -> None:
    (wheels / offered.wheels[1].file).unlink()
    with pytest.raises(BadInput, match="engine_wheels_missing"):
        install(offered, tmp_path / "added", str(wheels))
    with pytest.raises(BadInput, match="engine_folder"):
        install(offered, tmp_path / "added", str(tmp_path / "nowhere"))


def test_a_full_disk_is_noticed_before_anything_is_fetched(
    tmp_path: Path, wheels: Path, offered: EngineDownload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheel_install, "SPARE_BYTES", 1 << 60)
    with pytest.raises(DoesNotFit, match="engine_disk_short"):
        install(offered, tmp_path / "added", str(wheels))
    assert list((tmp_path / "added").iterdir()) == []


def test_changed_and_missing_files_are_found(tmp_path: Path, wheels: Path, offered: EngineDownload) -> None:
    folder = tmp_path / "added"
    install(offered, folder, str(wheels))
    module = folder / "mlx" / "tinyhelper" / "__init__.py"
    module.write_text("import evil\n")
    error = damage(folder, "mlx")
    assert error is not None
    assert error.reason.code == "engine_file_changed"
    assert error.reason.facts["file"] == "tinyhelper/__init__.py"
    module.unlink()
    error = damage(folder, "mlx")
    assert error is not None
    assert error.reason.code == "engine_unreadable"


class _Index(http.server.SimpleHTTPRequestHandler):
    """A package index: a page of links for each package, and the files. `broken` answers every file with an error."""

    broken = False
    served: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        name = self.path.strip("/").rpartition("/")[2]
        if self.path.endswith(".whl"):
            self.served.append(name)
            if self.broken and name.startswith("tinyhelper"):
                self.send_error(503)
                return
            self.path = f"/{name}"
            super().do_GET()
            return
        links = [path.name for path in Path(self.directory).glob(f"{name}-*.whl")]
        page = "".join(f'<a href="/files/{link}">{link}</a>' for link in links).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "max-age=600")
        super().end_headers()

    def log_message(self, *args: object) -> None:
        """Write nothing to the terminal."""


@pytest.fixture
def index(wheels: Path, offered: EngineDownload, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[_Index]]:
    """Serve the wheels on loopback, where pip finds them in place of the usual index."""
    handler = type("Handler", (_Index,), {"served": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=str(wheels)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("PIP_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
    monkeypatch.setenv("PIP_TRUSTED_HOST", f"127.0.0.1:{server.server_port}")  # pip caches only what it trusts
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("PIP_RETRIES", "0")
    yield handler
    server.shutdown()
    server.server_close()
    thread.join(10)


def test_an_engine_is_downloaded_with_progress(tmp_path: Path, index: type[_Index], offered: EngineDownload) -> None:
    seen = install(offered, tmp_path / "added", "")
    downloaded = seen[: seen.index(-1)]
    assert downloaded == sorted(downloaded)
    assert downloaded[-1] == offered.size_bytes
    assert not (tmp_path / "added" / KEPT).exists()
    assert installed_engines(tmp_path / "added")


def test_another_try_does_not_fetch_again_what_has_arrived(
    tmp_path: Path, index: type[_Index], offered: EngineDownload
) -> None:
    index.broken = True
    with pytest.raises(Unreachable, match="engine_not_downloaded"):
        install(offered, tmp_path / "added", "")
    index.broken = False
    install(offered, tmp_path / "added", "")
    assert index.served.count(offered.wheels[0].file) == 1
    assert [path.name for path in (tmp_path / "added").iterdir()] == ["mlx"]


def test_canceling_ends_pip_and_leaves_nothing_half(
    tmp_path: Path, index: type[_Index], offered: EngineDownload
) -> None:
    async def cancel_when_it_downloads() -> None:
        begun = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            work = group.create_task(
                install_engine(offered, tmp_path / "added", "", lambda _: begun.set(), lambda: None), name="install"
            )
            await asyncio.wait_for(begun.wait(), 60)
            work.cancel()
        assert work.cancelled()

    asyncio.run(cancel_when_it_downloads())
    assert installed_engines(tmp_path / "added") == {}
    assert not list((tmp_path / "added").glob(f"{UNFINISHED}*"))


def test_what_a_killed_process_has_left_is_deleted(tmp_path: Path) -> None:
    left = tmp_path / f"{UNFINISHED}x" / "files"
    left.mkdir(parents=True)
    (tmp_path / KEPT).mkdir()
    delete_unfinished(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [KEPT]  # recent downloads


def test_the_list_has_wheels_for_this_computer() -> None:
    listed = decode(wheels_file().read_bytes(), list[EngineWheels])
    assert [each.engine for each in listed] == ["pytorch", "mlx"]
    for each in listed:
        for wheels in each.systems.values():
            assert len({wheel.sha256 for wheel in wheels}) == len(wheels)
            assert all(parse_wheel_filename(wheel.file)[0] for wheel in wheels)
    for download in downloads():
        assert download.size_bytes < download.unpacked_bytes
        assert download.requirements().count("--hash=sha256:") == len(download.wheels)


@pytest.mark.parametrize("system", ["linux-x86_64", "macos-arm64"])
@pytest.mark.parametrize("python", ["311", "312", "313", "314"])
def test_every_system_and_python_gets_one_wheel_of_each_package(system: str, python: str) -> None:
    from packaging.tags import compatible_tags, cpython_tags

    version = (3, int(python[1:]))
    platforms = (
        [f"manylinux_2_{minor}_x86_64" for minor in range(39, 4, -1)] + ["manylinux2014_x86_64", "manylinux2010_x86_64"]
        if system.startswith("linux")
        else ["macosx_15_0_arm64", "macosx_14_0_arm64", "macosx_11_0_arm64"]
    )
    tags = [*cpython_tags(version, platforms=platforms), *compatible_tags(version, f"cp{python}", platforms)]
    for each in decode(wheels_file().read_bytes(), list[EngineWheels]):
        fitting = _fitting(each, system, tags)
        assert fitting is not None, (each.engine, system, python)
        assert len({wheel.name for wheel in fitting.wheels}) == len(fitting.wheels)
        if system.startswith("macos") and each.engine == "mlx":
            assert all("macosx_15" in wheel.file for wheel in fitting.wheels)  # the newest that runs there


def test_an_engine_without_a_wheel_for_this_python_is_not_offered(tmp_path: Path) -> None:
    wheel = Wheel("x", "1", "x-1-cp27-cp27m-win32.whl", 1, 1, "0" * 64)
    assert _fitting(EngineWheels("mlx", "1", {this_system(): [wheel]}), this_system(), list(sys_tags())) is None
    assert _fitting(EngineWheels("mlx", "1", {}), this_system(), list(sys_tags())) is None


def test_errors_are_apperrors(tmp_path: Path, wheels: Path, offered: EngineDownload) -> None:
    """A place that cannot be written is a sentence."""
    (tmp_path / "added").write_text("a file")
    with pytest.raises(AppError, match="engine_not_written"):
        install(offered, tmp_path / "added", str(wheels))
