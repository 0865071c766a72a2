"""The catalog of the app: strict when read, honest in what it says, easy to name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.catalog.families.family_table import FAMILIES
from app.catalog.gguf.gguf_file import is_model, part_names, parts_of, quantization_of
from app.catalog.hub.hub_address import check_file_names
from app.catalog.model_catalog import FILE, load_catalog
from app.core.errors import BadInput


def test_every_entry_can_be_asked_for() -> None:
    known = load_catalog()
    assert len(known.models) >= 45
    assert len({offer.id for offer in known.models}) == len(known.models)
    assert len({offer.name.casefold() for offer in known.models}) == len(known.models)
    assert len({(offer.repository, file.file) for offer in known.models for file in offer.files}) == (
        sum(len(offer.files) for offer in known.models)
    ), "no file is offered twice"
    for offer in known.models:
        assert sum(file.recommended for file in offer.files) == 1, offer.id
        for file in offer.files:
            check_file_names(offer.repository, file.file, offer.revision)
            assert is_model(file.file)
            assert quantization_of(file.file) == file.quantization, file.file


UNKNOWN_HASH = {"gemma-3-27b", "granite-4.0-h-small", "kimi-k2.6", "deepseek-v3.1"}


def test_every_file_is_promised_to_the_byte_or_says_that_it_is_not() -> None:
    """Its hash, or that of each of its files, is known; where it is not, the household pins the first one."""
    unknown = {offer.id for offer in load_catalog().models for file in offer.files if file.whole_hash is None}
    assert unknown == UNKNOWN_HASH, "docs/catalog.md counts them"
    pinned = [offer for offer in load_catalog().models if offer.is_pinned]
    assert len(pinned) >= 50
    for offer in pinned:
        for file in offer.files:
            known = file.whole_hash and file.size_bytes
            assert known or offer.id in UNKNOWN_HASH, (offer.id, file.file)


def test_the_document_says_how_many_hashes_are_unknown() -> None:
    known = load_catalog()
    files = [file for offer in known.models for file in offer.files]
    text = (FILE.parents[1] / "docs" / "catalog.md").read_text("utf-8")
    hashed = [file for file in files if file.whole_hash]
    at_commit = [file for offer in known.models if offer.is_pinned for file in offer.files if file.whole_hash]
    for said in (
        f"{len(known.models)} models",
        f"{len(files)} versions",
        f"{len(at_commit)} with a commit and a hash",
        f"{len(hashed) - len(at_commit)} with a hash",
        f"{len(files) - len(hashed)} without a hash",
        f"{sum(file.size_bytes is None for file in files)} without a size",
    ):
        assert said in text, said


# The architectures that llama.cpp of our engine knows, as far as the catalog needs them (src/llama-arch.cpp).
ENGINE_KNOWS = {
    "deepseek2", "deepseek4", "gemma3", "gemma4", "glm4moe", "gpt-oss", "granite", "granitehybrid", "lfm2", "lfm2moe",
    "llama", "llama4", "minimax-m2", "mistral3", "mistral4", "nemotron_h_moe", "olmo2", "phi3", "qwen2", "qwen3",
    "qwen35", "qwen35moe", "qwen3moe", "qwen3next", "smollm3",
}  # fmt: skip


def test_every_family_is_one_that_the_engine_runs() -> None:
    assert {offer.architecture for offer in load_catalog().models} <= ENGINE_KNOWS


def test_a_family_that_is_not_proved_runs_whole_only() -> None:
    whole = {offer.id for offer in load_catalog().models if not offer.splits}
    assert whole == {"deepseek-v4-flash", "gemma-4-e2b", "gemma-4-e4b"}
    assert all(offer.architecture in FAMILIES for offer in load_catalog().models if offer.splits)


def test_the_larger_version_is_taken_where_there_is_memory_for_it() -> None:
    offer, _ = load_catalog().find_by_name("qwen3.6-27b")

    def taken(gib: float) -> str | None:
        offered_file = offer.version_for(int(gib * (1 << 30)))
        return offered_file.quantization if offered_file else None

    assert [taken(gib) for gib in (8, 17, 18, 29, 30, 500)] == [
        None, None, "Q4_K_M", "Q4_K_M", "Q8_0", "Q8_0",
    ]  # fmt: skip


def test_a_conversation_takes_its_room_too() -> None:
    offer, file = load_catalog().find_by_name("qwen3-8b")
    assert file.size_bytes
    assert offer.kv_bytes_per_token
    weights = int(file.size_bytes * 1.1) + 1
    assert offer.version_for(weights + 4096 * offer.kv_bytes_per_token) is file
    assert offer.version_for(weights + 4096 * offer.kv_bytes_per_token, 8192) is None


def test_a_version_of_unknown_size_is_never_promised_to_fit() -> None:
    offer, _ = load_catalog().find_by_name("gemma-3-27b")
    assert offer.version_for(1 << 50) is None


def test_there_is_a_first_model_for_every_household() -> None:
    """Their ranks are unique; the larger of two is the better; each chats, needs no account, and its size is known."""
    offers = load_catalog().starters()
    ranks = [offer.starter for offer in offers]
    assert ranks == list(range(1, len(offers) + 1))
    assert len(offers) >= 10
    sizes = [next(file.size_bytes for file in offer.files if file.recommended) for offer in offers]
    assert sizes[0] is not None
    assert sizes[-1] is not None
    assert sizes[0] > 60 << 30
    assert sizes[-1] < 1 << 30
    assert all("chat" in offer.good_at and not offer.gated for offer in offers)


def test_a_model_in_several_files_is_promised_file_by_file() -> None:
    several = [(offer, file) for offer in load_catalog().models for file in offer.files if parts_of(file.file)]
    assert {offer.id for offer, _ in several} >= {"gpt-oss-120b", "glm-4.5-air"}
    for offer, offered_file in several:
        assert offered_file.file == part_names(offered_file.file)[0], "the first is the one that is asked for"
        assert offered_file.sha256 is None
        if offer.id in UNKNOWN_HASH:
            assert not offered_file.parts
            continue
        assert len(offered_file.parts) == parts_of(offered_file.file)
        sizes = [part.size_bytes for part in offered_file.parts]
        assert offered_file.size_bytes == (None if None in sizes else sum(size or 0 for size in sizes))
        assert load_catalog().has(str(offered_file.whole_hash))


def test_every_entry_is_described_in_german_too() -> None:
    said = [offer.about_in["de"] for offer in load_catalog().models]
    assert len(set(said)) == len(said)
    assert not any(offer.about == offer.about_in["de"] for offer in load_catalog().models)


def test_amounts_are_in_the_units_of_the_window() -> None:
    said = [words for offer in load_catalog().models for words in (offer.about, *offer.about_in.values())]
    assert not [words for words in said if " GB" in words]
    assert [words for words in said if " GiB" in words]


def test_hashes_are_those_of_one_file_each() -> None:
    files = [file for offer in load_catalog().models for file in offer.files]
    hashes = [file.sha256 for file in files if file.sha256]
    hashes += [part.sha256 for file in files for part in file.parts if part.sha256]
    assert len(hashes) == len(set(hashes)) >= 12
    assert load_catalog().has(hashes[0])
    assert not load_catalog().has("0" * 64)


def test_sizes_go_with_the_weights() -> None:
    """A quantized file has between 2 and 10 bits for each weight: a slip of a digit shows."""
    for offer in load_catalog().models:
        for file in offer.files:
            if offer.parameters and file.size_bytes:
                assert 2 < 8 * file.size_bytes / offer.parameters < 10, (offer.id, file.file)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("qwen3-8b", "Qwen3-8B-Q4_K_M.gguf"),
        ("Qwen3 8B", "Qwen3-8B-Q4_K_M.gguf"),
        ("llama-3.1", "Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf"),
        ("llama-3.1-8b:q8_0", "Meta-Llama-3.1-8B-Instruct-Q8_0.gguf"),
    ],
)
def test_a_model_is_found_by_what_people_type(name: str, file: str) -> None:
    _, offered_file = load_catalog().find_by_name(name)
    assert offered_file.file == file


def test_every_model_is_found_by_its_name() -> None:
    for offer in load_catalog().models:
        assert load_catalog().find_by_name(offer.name)[0] is offer


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("", "catalog_unknown"),
        ("nothing", "catalog_unknown"),
        ("qwen3-8v:Q8_0", "catalog_unknown_near"),
        ("qwen3", "catalog_ambiguous"),
        ("llama-3.1-8b:Q2_K", "catalog_no_version"),
    ],
)
def test_what_is_not_there_is_said(name: str, code: str) -> None:
    with pytest.raises(BadInput) as caught:
        load_catalog().find_by_name(name)
    assert caught.value.reason.code == code


@pytest.mark.parametrize(
    "change",
    [
        {"made": "yesterday"},
        {"models": [{}]},
        {"more": 1},
        {"revision": "../x"},
        {"sha256": "abc"},
        {"size_bytes": -1},
        {"n_layers": 2.5},
        {"license": ""},
    ],
)
def test_a_catalog_that_was_changed_badly_is_refused(change: dict[str, object], tmp_path: Path) -> None:
    whole = json.loads(FILE.read_text("utf-8"))
    first = whole["models"][0]
    for key, value in change.items():
        place = whole if key in ("made", "models", "more") else first
        place = first["files"][0] if key in ("sha256", "size_bytes") else place
        place[key] = value
    path = tmp_path / "catalog.json"
    path.write_text(json.dumps(whole), "utf-8")
    with pytest.raises(BadInput):
        load_catalog(path)
