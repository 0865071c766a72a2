"""Tests of llama.cpp's report about a build, with lines recorded on other machines."""

from __future__ import annotations

import pytest

from backends.probe import features, probe

X86 = "CPU : SSE3 = 1 | SSSE3 = 1 | AVX = 1 | AVX2 = 1 | F16C = 1 | FMA = 1 | REPACK = 1 |"
ARM = "CPU : NEON = 1 | ARM_FMA = 1 | DOTPROD = 1 | SME = 0 | ACCELERATE = 1 | REPACK = 1 | "
CUDA = "CUDA : ARCHS = 860 | USE_GRAPHS = 1 | PEER_MAX_BATCH_SIZE = 128 | CPU : SSE3 = 1 | AVX2 = 1 | "
METAL = "Metal : EMBED_LIBRARY = 1 | CPU : NEON = 1 | ARM_FMA = 1 | "


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (X86, ["SSE3", "SSSE3", "AVX", "AVX2", "F16C", "FMA", "REPACK"]),
        (ARM, ["NEON", "ARM_FMA", "DOTPROD", "ACCELERATE", "REPACK"]),
        (CUDA, ["SSE3", "AVX2"]),
        (METAL, ["NEON", "ARM_FMA"]),
        ("", []),
        ("hello", []),
    ],
)
def test_the_features_of_the_processor(line: str, expected: list[str]) -> None:
    assert features(line) == expected


def test_only_what_is_asked_for_is_probed() -> None:
    assert [engine["name"] for engine in probe(["fake"])["engines"]] == ["fake"]
    assert probe(["unknown"])["engines"] == []
