"""The features of this computer's processor beyond the portable baseline, as build flags for the engine."""

from __future__ import annotations

import sys
from pathlib import Path

# Instructions that every x86 computer has: such a build runs on all of them, with the same results.
PORTABLE = "-DGGML_NATIVE=OFF"
# Build flag -> Linux's name of the instructions. AMX is omitted: virtual machines announce it without providing it, and
# llama.cpp crashes.
X86 = {
    "GGML_AVX_VNNI": {"avx_vnni"},
    "GGML_AVX512": {"avx512f", "avx512cd", "avx512vl", "avx512dq", "avx512bw"},
    "GGML_AVX512_VBMI": {"avx512f", "avx512vbmi"},
    "GGML_AVX512_VNNI": {"avx512f", "avx512_vnni"},
    "GGML_AVX512_BF16": {"avx512f", "avx512_bf16"},
}
CPUINFO = Path("/proc/cpuinfo")


def flags(known: frozenset[str]) -> str:
    """Return the build flags for a processor with these features, or PORTABLE if the engine uses none of them."""
    return " ".join([PORTABLE, *(f"-D{flag}=ON" for flag, needs in X86.items() if needs <= known)])


def signs_of(flags: str) -> set[str]:
    """Return the features beyond the baseline that an engine compiled with these flags reports."""
    return {flag.removeprefix("GGML_") for flag in X86 if f"-D{flag}=ON" in flags.split()}


def signs_in(report: str) -> set[str]:
    """Parse the same features from the engine's own report (`SSE3 = 1 | AVX512 = 1 | …`)."""
    names = {name.rpartition(":")[2].strip() for name, _, on in _pairs(report) if on.strip() == "1"}
    return {name for name in names if name.startswith(("AVX512", "AVX_VNNI", "AMX"))}


def _pairs(report: str) -> list[tuple[str, str, str]]:
    return [part.partition("=") for part in report.split("|")]


def features() -> frozenset[str]:
    """Return the features of this x86 processor by their Linux names, or an empty set on any other system."""
    if sys.platform != "linux":
        return frozenset()
    for line in CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines():
        name, _, words = line.partition(":")
        if name.strip() == "flags":
            return frozenset(words.split())
    return frozenset()
