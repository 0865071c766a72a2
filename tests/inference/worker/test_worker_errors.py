"""A worker's last lines: the one that says why it ended."""

from __future__ import annotations

import pytest

from app.core.errors import BadInput
from app.core.reasons import said
from app.inference.worker.worker_errors import death_error, explaining_lines, refusal_error
from backends.worker_orders import Failed

ASSERTED = "/tmp/pip-x/llama-cpp-python_1/ggml-cpu/ops.cpp:4132: GGML_ASSERT(eps >= 0.0f) failed"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["loading", ASSERTED], "ops.cpp:4132: GGML_ASSERT(eps >= 0.0f) failed."),
        ([ASSERTED, "after it"], "ops.cpp:4132: GGML_ASSERT(eps >= 0.0f) failed."),
        ([r"C:\b\ggml.c:7: fatal error"], "ggml.c:7: fatal error."),
        (["a", "b", "c", "d"], "b\nc\nd"),
        (["Traceback: see x.py:3: why"], "Traceback: see x.py:3: why"),
        ([], ""),
    ],
)
def test_what_is_told_of_the_last_lines(lines: list[str], expected: str) -> None:
    assert explaining_lines(lines) == expected


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            "llama.cpp cannot load it: unknown model architecture: 'martian'",
            (
                "Models of the martian family need a newer engine than the one in this version of Poolhouse. Update "
                "Poolhouse, or choose another model."
            ),
        ),
        (
            "llama.cpp cannot load it: key not found in model: a.b",
            (
                "den could not load the model: llama.cpp cannot load it: key not found in model: a.b. Use a "
                "different model file, or another model."
            ),
        ),
        (
            "llama.cpp cannot be loaded: no file",
            (
                "den cannot use the engine: llama.cpp cannot be loaded: no file. Install Poolhouse there again. If "
                "it runs from its source, run `make run` in its folder to compile the engine."
            ),
        ),
    ],
)
def test_a_model_that_is_not_loaded_is_told_with_its_cure(words: str, sentence: str) -> None:
    cause = "llama_missing" if "be loaded" in words else ""
    facts: dict[str, str | int] = {"error": words.rpartition(": ")[2]}
    error = refusal_error(Failed(request=1, code="model_not_loaded", text=words, cause=cause, facts=facts), "den")
    assert isinstance(error, BadInput)
    assert said(error) == sentence


PINNED = "ggml_vulkan: Failed to allocate pinned memory (vk::Device::allocateMemory: ErrorOutOfDeviceMemory)"


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (
            [  # Vulkan, as seen on the software device with little memory
                PINNED,
                "ggml_vulkan: Device memory allocation of size 1024 failed.",
                "terminate called after throwing an instance of 'vk::SystemError'",
                "  what():  vk::Device::allocateMemory: ErrorOutOfDeviceMemory",
            ],
            "worker_card_short",
        ),
        (["CUDA error: out of memory", "ggml-cuda.cu:88: CUDA error"], "worker_card_short"),
        (["terminate called", "  what():  std::bad_alloc"], "worker_memory_short"),
        ([PINNED, "terminate called", "  what():  vk::Queue::submit: ErrorDeviceLost"], "worker_crashed"),
    ],
)
def test_a_card_that_runs_out_of_memory_is_told_from_other_deaths(lines: list[str], code: str) -> None:
    assert death_error("den", -6, lines).reason.code == code
