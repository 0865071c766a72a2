"""The catalogue of the app: strict when read, honest in what it says, easy to name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.catalog.catalogue import FILE, shipped
from app.catalog.gguf_names import is_model, part_names, parts_of, quantisation_of
from app.catalog.hub_address import checked
from app.core.errors import BadInput


def test_every_entry_can_be_asked_for() -> None:
    known = shipped()
    assert 12 <= len(known.models) <= 40
    assert len({offer.id for offer in known.models}) == len(known.models)
    for offer in known.models:
        assert sum(one.recommended for one in offer.files) == 1, offer.id
        for one in offer.files:
            checked(offer.repository, one.file, offer.revision)
            assert is_model(one.file)
            assert quantisation_of(one.file) == one.quantisation, one.file


def test_every_file_is_promised_to_the_byte() -> None:
    """Its revision cannot change, and its hash, or that of each of its files, is known."""
    for offer in shipped().models:
        assert offer.is_pinned, offer.id
        for one in offer.files:
            assert one.whole_hash, (offer.id, one.file)
            assert one.size_bytes, (offer.id, one.file)


def test_a_model_in_several_files_is_promised_file_by_file() -> None:
    several = [
        (offer, one) for offer in shipped().models for one in offer.files if parts_of(one.file)
    ]
    assert {offer.id for offer, _ in several} >= {"gpt-oss-120b", "glm-4.5-air"}
    for _, one in several:
        assert one.file == part_names(one.file)[0], "the first is the one that is asked for"
        assert one.sha256 is None
        assert len(one.parts) == parts_of(one.file)
        assert one.size_bytes == sum(part.size_bytes for part in one.parts)
        assert shipped().has(str(one.whole_hash))


def test_every_entry_is_described_in_german_too() -> None:
    said = [offer.about_in["de"] for offer in shipped().models]
    assert len(set(said)) == len(said)
    assert not any(offer.about == offer.about_in["de"] for offer in shipped().models)


def test_amounts_are_in_the_units_of_the_window() -> None:
    said = [
        words for offer in shipped().models for words in (offer.about, *offer.about_in.values())
    ]
    assert not [words for words in said if " GB" in words]
    assert [words for words in said if "12 GiB" in words]


def test_hashes_are_those_of_one_file_each() -> None:
    files = [one for offer in shipped().models for one in offer.files]
    hashes = [one.sha256 for one in files if one.sha256]
    hashes += [part.sha256 for one in files for part in one.parts]
    assert len(hashes) == len(set(hashes)) >= 12
    assert shipped().has(hashes[0])
    assert not shipped().has("0" * 64)


def test_sizes_go_with_the_weights() -> None:
    """A quantised file has between 2 and 10 bits for each weight: a slip of a digit shows."""
    for offer in shipped().models:
        for one in offer.files:
            if offer.parameters and one.size_bytes:
                assert 2 < 8 * one.size_bytes / offer.parameters < 10, (offer.id, one.file)


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
    _, found = shipped().named(name)
    assert found.file == file


def test_every_model_is_found_by_its_name() -> None:
    for offer in shipped().models:
        assert shipped().named(offer.name)[0] is offer


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("", "catalogue_unknown"),
        ("nothing", "catalogue_unknown"),
        ("qwen3", "catalogue_ambiguous"),
        ("llama-3.1-8b:Q2_K", "catalogue_no_version"),
    ],
)
def test_what_is_not_there_is_said(name: str, code: str) -> None:
    with pytest.raises(BadInput) as caught:
        shipped().named(name)
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
        {"licence": ""},
    ],
)
def test_a_catalogue_that_was_changed_badly_is_refused(
    change: dict[str, object], tmp_path: Path
) -> None:
    whole = json.loads(FILE.read_text("utf-8"))
    first = whole["models"][0]
    for key, value in change.items():
        place = whole if key in ("made", "models", "more") else first
        place = first["files"][0] if key in ("sha256", "size_bytes") else place
        place[key] = value
    path = tmp_path / "catalogue.json"
    path.write_text(json.dumps(whole), "utf-8")
    with pytest.raises(BadInput):
        shipped(path)
