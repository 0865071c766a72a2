"""The self-test's reading of its child process, and that child with a library that is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.core.reasons import said
from app.machine.engine_packs import self_test
from app.machine.engine_packs.self_test import result_of

CARD = {"name": "Vulkan0", "description": "A card", "kind": "gpu", "api": "Vulkan", "free_bytes": 5, "total_bytes": 9}
PROCESSOR = {"name": "CPU", "kind": "cpu", "api": "CPU"}


def answered(**engine: Any) -> str:
    return json.dumps({"python": "3.11", "engines": [{"name": "llamacpp", **engine}]})


def test_the_devices_of_the_pack_are_found() -> None:
    devices = result_of("vulkan", 0, answered(devices=[PROCESSOR, CARD, {**CARD, "name": "Vulkan1"}]), "").devices
    assert [device.name for device in devices] == ["Vulkan0", "Vulkan1"]


@pytest.mark.parametrize(
    ("code", "out", "err", "expected"),
    [
        (0, answered(devices=[PROCESSOR]), "", "No graphics card was found through Vulkan."),
        (0, answered(devices=[], missing_backends={"x.so": "no libcuda.so."}), "", "loaded: no libcuda.so. I"),
        (0, answered(missing="no engine"), "", "failed its test: no engine."),
        (0, "nonsense", "", "its answer was not understood"),
        (0, json.dumps({"engines": []}), "", "its answer was not understood"),
        (-11, "", "", "it wrote no error message"),
        (1, "", "Traceback\nOSError: broken.\n", "OSError: broken"),
    ],
)  # fmt: skip
def test_each_failure_has_a_sentence(code: int, out: str, err: str, expected: str) -> None:
    failure = result_of("vulkan", code, out, err).failure
    assert failure is not None
    assert expected in said(failure)


def test_the_systems_words_for_a_missing_driver_are_kept() -> None:
    path = "/home/me/engines/cuda13/libggml-cuda.so"
    words = "libcuda.so.1: cannot open shared object file: No such file or directory"
    said_by_loader = f"llama.cpp cannot use libggml-cuda.so: load_backend: failed to load {path}: {words}"
    failure = result_of("cuda13", 0, answered(missing_backends={path: said_by_loader}), "").failure
    assert failure is not None
    assert said(failure).startswith(f"The pack's library could not be loaded: {words}. Install")


async def test_a_library_that_is_none_fails(tmp_path: Path) -> None:
    (tmp_path / "libggml-vulkan.so").write_bytes(b"\x7fELF no library")
    tested = await self_test.self_test("vulkan", {"vulkan": tmp_path / "libggml-vulkan.so"})
    assert tested.devices == []
    assert tested.failure is not None
    assert tested.failure.code == "pack_not_loaded"


async def test_a_test_that_hangs_is_ended(tmp_path: Path) -> None:
    tested = await self_test.self_test("vulkan", {}, within_s=0.0)
    assert tested.failure is not None
    assert "no answer within 0 seconds" in said(tested.failure)
