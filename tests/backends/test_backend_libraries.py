"""Tests of which of the engine's libraries is loaded for a processor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from backends.contract import CPU_VARIANT, EXACT
from backends.llamacpp import backend_libraries, binding
from backends.llamacpp.backend_libraries import COMMON, SUFFIXES, cpu_variants, in_order, libraries

SCORES = {"x64": 1, "haswell": 64, "skylakex": 128, "zen4": 0, "sapphirerapids": 999}
VARIANTS = {name: Path(name) for name in SCORES}


def test_libraries_are_named_by_their_device(tmp_path: Path) -> None:
    suffix = SUFFIXES[0]
    for name in ("libggml", "libggml-base", "libggml-cpu-haswell", "libggml-vulkan", "libllama"):
        (tmp_path / f"{name}{suffix}").touch()
    (tmp_path / f"libggml-cpu-haswell{suffix}.0").touch()
    (tmp_path / "libggml-notes.txt").touch()
    assert libraries(tmp_path) == {
        "cpu-haswell": tmp_path / f"libggml-cpu-haswell{suffix}",
        "vulkan": tmp_path / f"libggml-vulkan{suffix}",
    }
    assert list(cpu_variants(tmp_path)) == ["haswell"]


@pytest.mark.parametrize(
    ("preferred", "order"),
    [
        ("", ["skylakex", "haswell", "x64"]),
        (EXACT, ["haswell", "skylakex", "x64"]),
        ("x64", ["x64", "skylakex", "haswell"]),
        ("sapphirerapids", ["sapphirerapids", "skylakex", "haswell", "x64"]),
        ("unheard of", ["skylakex", "haswell", "x64"]),
    ],
)
def test_the_best_variant_is_tried_first_unless_another_is_preferred(preferred: str, order: list[str]) -> None:
    assert list(in_order(VARIANTS, preferred, lambda path: SCORES[path.name])) == order


def test_a_file_that_is_no_library_does_not_run(tmp_path: Path) -> None:
    path = tmp_path / f"libggml-cpu-odd{SUFFIXES[0]}"
    path.write_bytes(b"not a library")
    assert backend_libraries.score(path) == 0


def loaded(variant: str, folder: Path, more: str = "") -> dict[str, object]:
    """Return what a fresh process, started in `folder`, reports of the engine."""
    program = (
        "import json\n"
        "from backends.llamacpp import binding\n"
        f"llama = binding.load()\n{more}\n"
        "print(json.dumps({'variant': binding.cpu_variant(), 'maps': open('/proc/self/maps').read()}))\n"
    )
    environment = {**os.environ, CPU_VARIANT: variant}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=folder, env=environment
    )
    answer: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return answer


@pytest.mark.skipif(sys.platform != "linux", reason="Linux lists a process's libraries")
@pytest.mark.parametrize("variant", ["", EXACT])
def test_the_engine_uses_one_variant_and_one_copy_of_each_library(variant: str, tmp_path: Path) -> None:
    report = loaded(variant, tmp_path, "llama.llama_supports_gpu_offload()")
    names = {Path(line.split()[-1]).name for line in str(report["maps"]).splitlines() if ".so" in line}
    common = {name.partition(".")[0] for name in names if name.startswith(("libggml.", "libggml-base."))}
    assert common == {"libggml", "libggml-base"}
    assert len([name for name in names if name.startswith(("libggml.", "libggml-base."))]) == 2, names
    assert report["variant"]
    if variant == EXACT:
        assert report["variant"] in COMMON


@pytest.mark.skipif(sys.platform != "linux", reason="Linux lists a process's libraries")
def test_no_library_is_looked_for_in_the_current_directory(tmp_path: Path) -> None:
    """llama.cpp loads every back end in the current directory if none is registered yet."""
    for name in ("libggml-cpu-haswell.so", "libggml-cpu-x64.so", "libggml-vulkan.so", "libggml-rpc.so"):
        (tmp_path / name).symlink_to(_one_library(name) or "/nonexistent")
    report = loaded("", tmp_path, "llama.llama_supports_gpu_offload(); llama.llama_supports_rpc()")
    assert str(tmp_path) not in str(report["maps"])


def _one_library(name: str) -> Path | None:
    folder = binding.libraries_folder(binding.load())
    return folder / name if (folder / name).exists() else None
