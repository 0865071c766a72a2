"""Tests of engines' reports about this machine: the real one in its child, and children that lie, die and hang."""

from __future__ import annotations

import json
import sys
import time

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.errors import Reason
from app.machine import paths
from app.machine.hardware import engines
from app.machine.hardware.engines import Device, Engine, describe, engine_of

CPU = Device("CPU", "A CPU", "cpu", "CPU", 1 << 30, 2 << 30)
GPU = Device("CUDA0", "NVIDIA RTX 3060", "gpu", "CUDA", 8 << 30, 12 << 30)
FOUND = {
    "python": "3.11",
    "engines": [
        {
            "name": "llamacpp", "version": "0.3", "system": "CPU : AVX2 = 1 |", "features": ["AVX2"],
            "supports_gpu": True,
            "devices": [{"name": "CPU", "kind": "cpu", "free_bytes": 1, "total_bytes": 2}],
        },
        {"name": "fake", "version": "1", "devices": []},
    ],
}  # fmt: skip


async def test_the_real_engine_tells_its_processor() -> None:
    (engine,) = await engines.probe_all()
    assert engine.name == "llamacpp"
    assert not engine.missing
    assert engine.version in engine.build
    assert [device.kind for device in engine.devices].count("cpu") == 1
    assert all(0 < device.free_bytes <= device.total_bytes for device in engine.devices)


async def test_a_probe_that_never_answers_is_killed_and_named() -> None:
    began = time.monotonic()
    sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
    before = psutil.Process().children()
    with pytest.raises(TimeoutError):
        await engines.run_child(sleeper, 0.3)
    assert time.monotonic() - began < 30
    assert psutil.Process().children() == before


async def test_a_hung_engine_is_one_that_is_missing() -> None:
    engine = await engines.probe("llamacpp", within_s=0.001)
    assert engine == Engine("llamacpp", missing=Reason("no_answer_within", {"seconds": 0}))


async def test_a_child_that_fails_says_its_last_line() -> None:
    command = paths.python_command("-c", "import sys; sys.exit('no\\nlibgomp is missing.')")
    code, _, err = await engines.run_child(command, 30)
    assert code == 1
    assert engines.engine_of("x", 1, "", err).missing == Reason("engine_words", {"words": "libgomp is missing"})


async def test_an_engine_that_is_unknown_there_is_missing() -> None:
    engine = await engines.probe("pytorch")
    assert engine.missing == Reason("answer_not_understood")


def test_the_engine_that_was_asked_for_is_found() -> None:
    engine = engine_of("llamacpp", 0, json.dumps(FOUND), "")
    assert (engine.version, engine.features) == ("0.3", ["AVX2"])
    assert engine.devices == [Device("CPU", kind="cpu", free_bytes=1, total_bytes=2)]


@pytest.mark.parametrize(
    ("code", "out", "err", "why"),
    [
        (1, "", "Traceback\nMemoryError: no.", Reason("engine_words", {"words": "MemoryError: no"})),
        (-11, "", "", Reason("said_nothing")),
        (0, "hello", "", Reason("answer_not_understood")),
        (0, '{"engines": []}', "", Reason("answer_not_understood")),
        (0, '{"engines": [{"name": "llamacpp", "devices": [{"free_bytes": -1}]}]}', "",
         Reason("answer_not_understood")),
    ],
)  # fmt: skip
def test_anything_else_is_a_missing_engine(code: int, out: str, err: str, why: Reason) -> None:
    assert engine_of("llamacpp", code, out, err) == Engine("llamacpp", missing=why)


@given(st.integers(-64, 255), st.text(), st.text())
def test_no_answer_raises(code: int, out: str, err: str) -> None:
    assert engine_of("llamacpp", code, out, err).name == "llamacpp"


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ([], "Chip 9"),
        ([Engine("llamacpp", missing=Reason("engine_words", {"words": "gone"}))], "Chip 9"),
        ([Engine("llamacpp", features=["AVX", "AVX2", "FMA"], devices=[CPU])], "Chip 9 · AVX2"),
        ([Engine("llamacpp", features=["NEON"], devices=[CPU, GPU])],
         "Chip 9 · NEON · NVIDIA RTX 3060 (12.0 GiB)"),
        ([Engine("a", devices=[GPU]), Engine("b", devices=[GPU])],
         "Chip 9 · NVIDIA RTX 3060 (12.0 GiB)"),
        ([Engine("a", devices=[Device("BLAS", kind="accelerator")])], "Chip 9 · BLAS"),
    ],
)  # fmt: skip
def test_a_machine_in_one_line(expected: list[Engine], text: str) -> None:
    assert describe("Chip 9", expected) == text
