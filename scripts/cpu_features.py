"""This computer's processor features beyond those of every computer, as flags of the engine's build."""

from __future__ import annotations

import sys
from pathlib import Path

# What every x86 computer has runs on all of them, and gives the same numbers on all of them.
PORTABLE = "-DGGML_NATIVE=OFF"
# Flag of the build -> what Linux calls the instructions. AMX is left out: virtual machines announce it
# and do not deliver it, and llama.cpp crashes.
X86 = {
    "GGML_AVX_VNNI": {"avx_vnni"},
    "GGML_AVX512": {"avx512f", "avx512cd", "avx512vl", "avx512dq", "avx512bw"},
    "GGML_AVX512_VBMI": {"avx512f", "avx512vbmi"},
    "GGML_AVX512_VNNI": {"avx512f", "avx512_vnni"},
    "GGML_AVX512_BF16": {"avx512f", "avx512_bf16"},
}
CPUINFO = Path("/proc/cpuinfo")


def flags(known: frozenset[str]) -> str:
    """Return the build flags for a processor with these features; PORTABLE if nothing is gained."""
    return " ".join([PORTABLE, *(f"-D{flag}=ON" for flag, needs in X86.items() if needs <= known)])


def signs_of(flags: str) -> set[str]:
    """Return the processor features that an engine built with these flags reports, of those not every computer has."""
    return {flag.removeprefix("GGML_") for flag in X86 if f"-D{flag}=ON" in flags.split()}


def signs_in(report: str) -> set[str]:
    """The same, from an engine's own list (`SSE3 = 1 | AVX512 = 1 | …`)."""
    names = {name.rpartition(":")[2].strip() for name, _, on in _pairs(report) if on.strip() == "1"}
    return {name for name in names if name.startswith(("AVX512", "AVX_VNNI", "AMX"))}


def _pairs(report: str) -> list[tuple[str, str, str]]:
    return [part.partition("=") for part in report.split("|")]


def features() -> frozenset[str]:
    """The names that Linux gives to what an x86 processor can do; elsewhere nothing is known."""
    if sys.platform != "linux":
        return frozenset()
    for line in CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines():
        name, _, words = line.partition(":")
        if name.strip() == "flags":
            return frozenset(words.split())
    return frozenset()
