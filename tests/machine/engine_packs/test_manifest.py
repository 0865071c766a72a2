"""The rules that a pack's manifest must meet."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.core.errors import AppError, BadInput
from app.core.reasons import said
from app.machine.engine_packs import manifest as rules
from tests.machine.engine_packs.fake_pack import ENGINE, FILES, LIBRARY, manifest


def parsed(**changes: Any) -> rules.Manifest:
    return rules.parse(json.dumps(manifest(**changes)).encode(), "pack")


def file(path: str, size_bytes: int = 1) -> dict[str, Any]:
    return {"path": path, "size_bytes": size_bytes, "sha256": "a" * 64}


def test_a_whole_manifest_is_read() -> None:
    pack = parsed(lacks=["bf16 arithmetic"], flags=["-DGGML_VULKAN=ON"])
    assert pack.name == f"vulkan-{ENGINE}-{pack.system}"
    assert pack.size_bytes == sum(map(len, FILES.values()))
    assert pack.backend_names() == {"vulkan": LIBRARY}
    assert rules.unfit(pack, pack.system, f"{ENGINE}+poolhouse.1") is None


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"format": 2, "backend": 7}, "pack_newer_format"),
        ({"format": 0}, "pack_no_manifest"),
        ({"backend": ""}, "pack_no_manifest"),
        ({"backend": "../x"}, "pack_no_manifest"),
        ({"engine_version": "0.3.36/.."}, "pack_no_manifest"),
        ({"surprise": 1}, "pack_no_manifest"),
        ({"files": []}, "pack_no_manifest"),
        ({"files": [file(LIBRARY), file("LIBGGML-vulkan.so")]}, "pack_no_manifest"),
        ({"files": [file(LIBRARY, 1 << 40)]}, "pack_no_manifest"),
        ({"files": [file(f"{number}.so", 3 << 30) for number in range(3)]}, "pack_too_large"),
        ({"files": [file(f"{number}.so") for number in range(201)]}, "pack_no_manifest"),
        ({"libraries": ["other.so"]}, "pack_incomplete"),
        ({"libraries": []}, "pack_no_manifest"),
        ({"built": "yesterday"}, "pack_no_manifest"),
    ],
)
def test_a_broken_manifest_is_refused(changes: dict[str, Any], code: str) -> None:
    with pytest.raises(AppError) as refused:
        parsed(**changes)
    assert refused.value.reason.code == code
    assert said(refused.value)


@pytest.mark.parametrize(
    "path",
    [
        "../up.so", "/etc/passwd", "a/../b", "a//b", "a/", ".hidden", "", "C:/x", "a\\b", "con", "lib/NUL.so",
        "pack.json", "PACK.JSON", "a/b/c/d/e.so", "name\n.so", "e\u0301.so", "trailing.", "x" * 121, "-option",
    ],
)  # fmt: skip
def test_an_unsafe_path_is_refused(path: str) -> None:
    with pytest.raises(AppError) as refused:
        parsed(files=[file(LIBRARY), file(path)])
    assert refused.value.reason.code in ("pack_unsafe", "pack_no_manifest")


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"\xff", b"[" * 100_000, b" " * ((1 << 20) + 1)])
def test_what_is_no_manifest_is_refused(data: bytes) -> None:
    with pytest.raises(AppError) as refused:
        rules.parse(data, "pack")
    assert refused.value.reason.code == "pack_no_manifest"


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"backend": "opencl"}, "pack_unknown_backend", "is for opencl"),
        ({"system": "windows-x86_64"}, "pack_other_system", "is for windows-x86_64, but this computer is linux-x86_64"),
        (
            {"engine_version": "0.3.35"},
            "pack_other_engine",
            "llama.cpp 0.3.35, but this version of Poolhouse has 0.3.36",
        ),
    ],
)
def test_a_pack_that_does_not_fit_is_refused_by_name(changes: dict[str, Any], code: str, words: str) -> None:
    reason = rules.unfit(parsed(**{"system": "linux-x86_64", **changes}), "linux-x86_64", "0.3.36+local")
    assert reason is not None
    assert reason.code == code
    assert words in said(reason)


def test_the_name_of_a_build_ends_in_the_hash_of_its_manifest() -> None:
    assert rules.installed_name(parsed(), "0123456789abcdef" * 4).endswith("-0123456789abcdef")


@pytest.mark.parametrize("paths", [("a", "a/b"), ("A/b/c", "a"), ("a/b/c", "a/B"), ("Pack.json/x",)])
def test_a_file_that_is_a_folder_too_is_refused(paths: tuple[str, ...]) -> None:
    with pytest.raises(BadInput, match="pack_no_manifest"):
        parsed(files=[file(LIBRARY), *map(file, paths)])


def test_each_variant_of_a_processor_pack_has_its_name() -> None:
    libraries = ["libggml-cpu-haswell.so", "libggml-cpu-zen4.so"]
    pack = parsed(backend="cpu", libraries=libraries, files=[file(path) for path in libraries])
    assert pack.backend_names() == {"cpu-haswell": libraries[0], "cpu-zen4": libraries[1]}


def test_a_beginning_of_a_name_is_enough_if_it_is_of_one_pack() -> None:
    names = ["cuda12-a", "cuda13-a", "vulkan-a", "vulkan-a.b"]
    assert rules.matching(names, "cuda13") == ["cuda13-a"]
    assert rules.matching(names, "cuda") == ["cuda12-a", "cuda13-a"]
    assert rules.matching(names, "vulkan-a") == ["vulkan-a"]
    assert rules.matching(names, "metal") == []
