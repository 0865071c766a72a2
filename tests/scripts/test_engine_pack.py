"""Building engine packs: recipes, tools, the pack folder, and one whole build of a library of ten lines."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from app.machine.engine_packs.manifest import BACKENDS, MANIFEST
from app.machine.engine_packs.pack_writer import write_archive
from app.machine.engine_packs.store import PackStore, this_system
from scripts.engine_pack import __main__ as build
from scripts.engine_pack import cuda_tools, pack_folder, recipes, vulkan_tools
from scripts.engine_pack.offer import offer
from scripts.engine_pack.recipes import LINUX, MACOS, RECIPES, WINDOWS, Recipe
from scripts.setup_errors import Trouble

ABOUT = {"backend": "vulkan", "engine_version": "0.3.36", "ggml_version": "0.25.3", "system": this_system()}


def test_each_back_end_has_a_recipe_with_a_cure_for_each_system() -> None:
    assert set(RECIPES) == set(BACKENDS)
    for recipe in RECIPES.values():
        assert set(recipe.systems) <= {LINUX, MACOS, WINDOWS}
        assert recipe.backend in recipe.target or recipe.target in ("ggml", "ggml-cuda")
        assert all(cure.endswith("start again.") for cure in recipe.cure.values())


@pytest.mark.parametrize("backend", sorted(RECIPES))
@pytest.mark.parametrize("system", [LINUX, MACOS, WINDOWS])
def test_missing_tools_are_named_with_the_cure(backend: str, system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = RECIPES[backend]
    monkeypatch.setattr(recipes, "system_name", lambda: system)
    monkeypatch.setattr(recipes, "check_compiler", lambda: None)
    monkeypatch.setattr(recipes, "find_program", lambda name: None)
    if system not in recipe.systems:
        with pytest.raises(Trouble, match="cannot be built on"):
            recipes.check_tools(recipe)
    elif recipe.programs:
        with pytest.raises(Trouble, match=r"needs .*, which was not found\. .* start again\."):
            recipes.check_tools(recipe)
    else:
        recipes.check_tools(recipe)
        assert "start again" in str(recipes.missing_tools(recipe, "a tool"))


def test_the_same_files_give_the_same_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1790000000")
    digests = set()
    for folder, seconds in ((tmp_path / "one", 1), (tmp_path / "two", 10**9)):
        folder.mkdir()
        library, license_text = folder / "libggml-vulkan.so", folder / "LICENSE"
        library.write_bytes(b"library")
        license_text.write_text("MIT", "utf-8")
        os.utime(library, (seconds, seconds))
        pack = pack_folder.write_pack(folder, ABOUT, [library], licenses={"llama.cpp.txt": license_text})
        packed = write_archive(pack, folder / "pack.tar.gz", pack.name)
        digests.add(hashlib.sha256(packed.read_bytes()).hexdigest())
        installed = PackStore(tmp_path / folder.name / "engines", engine_version="0.3.36").install(packed)
        assert installed.problem is None
        assert json.loads((pack / MANIFEST).read_text("utf-8"))["built"] == "2026-09-21"
    assert len(digests) == 1


def test_libraries_that_come_along_are_not_loaded_by_themselves(tmp_path: Path) -> None:
    (tmp_path / "libggml-cuda.so").write_bytes(b"1")
    (tmp_path / "real").write_bytes(b"2")
    (tmp_path / "libcudart.so.13").symlink_to(tmp_path / "real")
    pack = pack_folder.write_pack(
        tmp_path, {**ABOUT, "backend": "cuda13"}, [tmp_path / "libggml-cuda.so"], [tmp_path / "libcudart.so.13"]
    )
    written = json.loads((pack / MANIFEST).read_text("utf-8"))
    assert written["libraries"] == ["libggml-cuda.so"]
    assert sorted(file["path"] for file in written["files"]) == ["libcudart.so.13", "libggml-cuda.so"]
    assert not (pack / "libcudart.so.13").is_symlink()


def test_what_the_shader_compiler_lacks_is_read_from_the_configuration() -> None:
    output = "-- GL_KHR_cooperative_matrix supported by glslc\n-- GL_EXT_bfloat16 not supported by glslc\n"
    output += "-- GL_EXT_new not supported by glslc\n"
    assert vulkan_tools.lacking(output) == ["bf16 arithmetic", "GL_EXT_new"]


def test_the_version_of_vulkan_headers_is_read(tmp_path: Path) -> None:
    assert vulkan_tools.header_version(tmp_path) is None
    (tmp_path / "vulkan").mkdir()
    (tmp_path / "vulkan/vulkan.hpp").touch()
    (tmp_path / "vulkan/vulkan_core.h").write_text(
        "#define VK_HEADER_VERSION 239\n"
        "#define VK_HEADER_VERSION_COMPLETE VK_MAKE_API_VERSION(0, 1, 3, VK_HEADER_VERSION)\n",
        "utf-8",
    )
    assert vulkan_tools.header_version(tmp_path) == (1, 3, 239)


def test_old_or_absent_vulkan_tools_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VULKAN_SDK", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(Trouble, match=r"needs vulkan/vulkan\.hpp"):
        vulkan_tools.system_tools()
    monkeypatch.setattr(vulkan_tools, "header_version", lambda include: (1, 3, 239))
    with pytest.raises(Trouble, match=r"headers 1\.3\.272 or newer; this system has 1\.3\.239"):
        vulkan_tools.system_tools()
    monkeypatch.setattr(vulkan_tools, "header_version", lambda include: (1, 4, 309))
    assert "1.4.309" in vulkan_tools.system_tools().described
    monkeypatch.delenv("VULKAN_SDK")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(Trouble, match="needs glslc"):
        vulkan_tools.system_tools()


def test_a_package_with_another_hash_is_not_unpacked(tmp_path: Path) -> None:
    package = tmp_path / "glslc_2025.2-1_amd64.deb"
    package.write_bytes(b"another")
    with pytest.raises(Trouble, match="differs from the one"):
        vulkan_tools.unpack([package], tmp_path / "root")


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="links a stub with the system's compiler")
def test_wheels_are_arranged_as_a_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_tools, "driver_functions", lambda project: ["cuDeviceGet", "cuMemCreate"])
    wheels = tmp_path / "nvidia"
    for path in (
        "cu13/bin/nvcc",
        "cu13/include/cuda.h",
        "cuda_runtime/lib/libcudart.so.13",
        "cublas/lib/libcublas.so.13",
    ):
        (wheels / path).parent.mkdir(parents=True, exist_ok=True)
        (wheels / path).write_text(path, "utf-8")
    root = tmp_path / "toolkit"
    cuda_tools.arrange(wheels, root)
    assert (root / "bin/nvcc").read_text("utf-8") == "cu13/bin/nvcc"
    assert (root / "lib64/libcudart.so").resolve().name == "libcudart.so.13"
    assert (root / "lib/stubs/libcuda.so").stat().st_size > 0
    assert [path.name for path in cuda_tools.runtime_in(root)] == ["libcudart.so.13", "libcublas.so.13"]


def test_the_licenses_of_what_comes_along_have_names_of_their_own(tmp_path: Path) -> None:
    for name in ("nvidia_cublas-13.1", "nvidia_cuda_runtime-13.0", "nvidia_nvvm-13.0"):
        (tmp_path / f"{name}.dist-info/licenses").mkdir(parents=True)
        (tmp_path / f"{name}.dist-info/licenses/License.txt").touch()
    assert sorted(cuda_tools.licenses_in(tmp_path)) == ["nvidia_cublas.txt", "nvidia_cuda_runtime.txt"]


def test_a_compiler_without_cublas_is_no_toolkit(tmp_path: Path) -> None:
    (tmp_path / "lib64").mkdir()
    assert not cuda_tools.has_cublas(tmp_path)
    (tmp_path / "lib64/libcublas.so.13").touch()
    assert cuda_tools.has_cublas(tmp_path)


def test_a_pack_is_offered_for_a_card_until_it_was_built() -> None:
    text = offer(["NVIDIA GA106"], LINUX, [])
    assert "(NVIDIA GA106). `make engine BACKEND=vulkan` (about 6 minutes) or `make engine BACKEND=cuda13`" in text
    assert "cuda13" not in offer(["AMD Navi 31"], LINUX, ["cpu-0.3.36-linux-x86_64.tar.gz"])
    assert "BACKEND=metal" in offer(["Apple GPU"], MACOS, [])
    assert offer([], LINUX, []) == ""
    assert offer(["AMD Navi 31"], LINUX, ["vulkan-0.3.36-linux-x86_64.tar.gz"]) == ""


TINY_PROJECT = """cmake_minimum_required(VERSION 3.14)
project(ggml C CXX)
set(GGML_VERSION_MAJOR 0)
set(GGML_VERSION_MINOR 25)
set(GGML_VERSION_PATCH 3)
message(STATUS "GL_EXT_bfloat16 not supported by glslc")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
add_library(ggml-tiny MODULE tiny.cpp)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a compiler on PATH")
def test_a_whole_build_makes_the_same_pack_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "source"
    (source / "ggml").mkdir(parents=True)
    (source / "ggml/CMakeLists.txt").write_text(TINY_PROJECT, "utf-8")
    (source / "ggml/tiny.cpp").write_text('extern "C" const char *where() { return __FILE__; }\n', "utf-8")
    (source / "LICENSE").write_text("MIT", "utf-8")
    recipe = Recipe("vulkan", "ggml-tiny", "ggml-tiny", (), (LINUX, MACOS), minutes=1, cure={})
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1790000000")
    monkeypatch.setattr(build, "fetch", lambda work, parts: source)
    monkeypatch.setattr(build, "tools_for", lambda recipe, architectures: build.Tools(described="no tools"))
    packed: list[bytes] = []
    for name in ("one", "two"):
        monkeypatch.setattr(build, "PROJECT", tmp_path)
        monkeypatch.setattr(build, "WORK", tmp_path / name)
        pack = build.build(recipe, 1, "")
        packed.append(pack.with_name(f"{pack.name}.tar.gz").read_bytes())
        written: dict[str, Any] = json.loads((pack / MANIFEST).read_text("utf-8"))
    assert packed[0] == packed[1]
    assert written["lacks"] == ["bf16 arithmetic"]
    assert written["ggml_version"] == "0.25.3"
    assert written["compiler"].endswith("no tools")
    assert "cannot compile bf16 arithmetic" in capsys.readouterr().out
    assert build.build(recipe, 1, "").name == pack.name  # again, with nothing to compile


def test_a_build_that_cannot_be_configured_says_where_the_output_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "source/ggml").mkdir(parents=True)
    (tmp_path / "source/ggml/CMakeLists.txt").write_text("message(FATAL_ERROR no)\n", "utf-8")
    monkeypatch.setattr(build, "WORK", tmp_path / "work")
    monkeypatch.setattr(build, "fetch", lambda work, parts: tmp_path / "source")
    recipe = Recipe("metal", "ggml-metal", "ggml-metal", (), (LINUX, MACOS, WINDOWS), minutes=1, cure={})
    with pytest.raises(Trouble, match=r"could not configure the pack.*build\.log"):
        build.build(recipe, 1, "")
