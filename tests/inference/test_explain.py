"""A worker's last lines: the one that says why it ended."""

from __future__ import annotations

import pytest

from app.inference.explain import telling

ASSERTED = "/tmp/pip-x/llama-cpp-python_1/ggml-cpu/ops.cpp:4132: GGML_ASSERT(eps >= 0.0f) failed"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["loading", ASSERTED], "ops.cpp:4132: GGML_ASSERT(eps >= 0.0f) failed."),
        ([ASSERTED, "after it"], "ops.cpp:4132: GGML_ASSERT(eps >= 0.0f) failed."),
        ([r"C:\b\ggml.c:7: fatal error"], "ggml.c:7: fatal error."),
        (["a", "b", "c", "d"], "b\nc\nd"),
        (["Traceback: see x.py:3: why"], "Traceback: see x.py:3: why"),
        ([], ""),
    ],
)
def test_what_is_told_of_the_last_lines(lines: list[str], told: str) -> None:
    assert telling(lines) == told
