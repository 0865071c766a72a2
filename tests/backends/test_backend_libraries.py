"""Tests of which of the engine's libraries is loaded for a processor."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from backends.llamacpp import backend_libraries, binding
from backends.llamacpp.backend_libraries import SUFFIXES, by_score, cpu_variants, in_order, libraries

SCORES = {"x64": 1, "haswell": 64, "skylakex": 128, "zen4": 0}
VARIANTS = {name: Path(name) for name in SCORES}


@pytest.fixture
def scores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend_libraries, "score", lambda path: SCORES[path.name])


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


def test_the_best_variant_comes_first_and_none_that_does_not_run() -> None:
    assert by_score(VARIANTS, lambda path: SCORES[path.name]) == ["skylakex", "haswell", "x64"]


@pytest.mark.usefixtures("scores")
@pytest.mark.parametrize(
    ("preferred", "order"),
    [
        ("", ["haswell", "skylakex", "x64"]),
        ("skylakex", ["skylakex", "haswell", "x64"]),
        ("unheard of", ["haswell", "skylakex", "x64"]),
    ],
)
def test_the_common_variant_is_used_unless_another_is_wanted(preferred: str, order: list[str]) -> None:
    assert list(in_order(VARIANTS, preferred)) == order


def test_a_file_that_is_no_library_does_not_run(tmp_path: Path) -> None:
    path = tmp_path / f"libggml-cpu-odd{SUFFIXES[0]}"
    path.write_bytes(b"not a library")
    assert backend_libraries.score(path) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="Linux lists a process's libraries")
def test_ggml_functions_are_those_of_the_library_that_libllama_uses() -> None:
    """A wheel holds several copies of libggml. The registry of another copy would be empty or a different one."""
    names = [name for name in _mapped() if Path(name).name.startswith(("libggml.", "libggml-base."))]
    assert binding.ggml("ggml_backend_dev_count", ctypes.c_size_t)() > 0
    assert len(names) == len({Path(name).name.partition(".")[0] for name in names}), names


def _mapped() -> list[str]:
    """Return the shared libraries of a fresh process that has loaded the engine."""
    program = (
        "import ctypes\n"
        "from backends.llamacpp import binding\n"
        "binding.ggml('ggml_backend_dev_count', ctypes.c_size_t)()\n"
        "binding.ggml('ggml_nbytes', ctypes.c_size_t, ctypes.c_void_p)\n"
        "print(open('/proc/self/maps').read())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return sorted({line.split()[-1] for line in done.stdout.splitlines() if ".so" in line})
