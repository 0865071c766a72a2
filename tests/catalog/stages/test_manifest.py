"""A manifest survives the wire, and nothing that is not one gets past it."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.catalog.stages.manifest import (
    MAX_JSON_BYTES,
    Manifest,
    Piece,
    WantedPiece,
    from_json,
    to_json,
    wanted_bytes,
    wants_from_json,
    wants_to_json,
)
from app.core.errors import AppError, BadInput, DoesNotFit
from app.core.reasons import said

PIECES = (Piece("a" * 64, 100, 32), Piece("b" * 64, 64, 160), Piece("a" * 64, 1, 224))
MANIFEST = Manifest("c" * 64, b"header \xff", PIECES, 256)


def test_there_and_back() -> None:
    again = from_json(to_json(MANIFEST))
    assert again == MANIFEST
    assert again.id == MANIFEST.id


def test_the_id_stands_for_the_bytes_of_the_stage() -> None:
    manifests = [
        replace(MANIFEST, header=b"other"),
        replace(MANIFEST, total_bytes=257),
        replace(MANIFEST, pieces=PIECES[:2]),
        replace(MANIFEST, pieces=(PIECES[1], *PIECES[1:])),
    ]
    assert len({manifest.id for manifest in (MANIFEST, *manifests)}) == 5
    assert replace(MANIFEST, model_id="d" * 64).id == MANIFEST.id


def changed(**fields: object) -> bytes:
    return json.dumps({**json.loads(to_json(MANIFEST)), **fields}).encode()


def piece(**fields: object) -> bytes:
    first = {"sha256": "a" * 64, "n_bytes": 100, "offset": 32}
    return changed(pieces=[{**first, **fields}], total_bytes=132)


WRONG = {
    "no JSON": b"{",
    "no UTF-8": b'{"model_id": "\xff"}',
    "deep": b"[" * 100_000,
    "other form": b"[]",
    "text for a number": changed(total_bytes="256"),
    "fraction": changed(total_bytes=256.5),
    "no model": changed(model_id="x"),
    "no pieces": changed(pieces=[]),
    "short hash": piece(sha256="a" * 63),
    "hash of no hex": piece(sha256="g" * 64),
    "hash with a line": piece(sha256="a" * 64 + "\n"),
    "empty piece": piece(n_bytes=0),
    "negative piece": piece(n_bytes=-5),
    "huge piece": piece(n_bytes=1 << 62),
    "inside the header": piece(offset=3),
    "negative offset": piece(offset=-1),
    "far off": piece(offset=1 << 20),
    "overlap": changed(pieces=[{"sha256": "a" * 64, "n_bytes": 9, "offset": 32}] * 2),
    "smaller than its pieces": changed(total_bytes=224),
    "larger than its pieces": changed(total_bytes=1 << 20),
    "header of no base64": changed(header="%%"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_not_a_manifest_is_refused(case: str) -> None:
    with pytest.raises(BadInput) as error:
        from_json(WRONG[case])
    assert said(error.value)


def test_sizes_are_bounded() -> None:
    with pytest.raises(BadInput):
        from_json(b" " * (MAX_JSON_BYTES + 1))
    with pytest.raises(DoesNotFit):
        from_json(to_json(MANIFEST), allowed_bytes=255)
    assert from_json(to_json(MANIFEST), allowed_bytes=256) == MANIFEST


def test_many_pieces_are_refused() -> None:
    header = base64.b64encode(b"h").decode()
    item = {"sha256": "a" * 64, "n_bytes": 1, "offset": 1}
    pieces = [{**item, "offset": 1 + index} for index in range(65_537)]
    data = {"model_id": "c" * 64, "header": header, "pieces": pieces, "total_bytes": 65_538}
    with pytest.raises(BadInput):
        from_json(json.dumps(data).encode())


@given(st.binary(max_size=200))
def test_garbage_is_refused(data: bytes) -> None:
    with pytest.raises(AppError):
        from_json(data)


def test_wants_are_checked_against_the_manifest() -> None:
    wants = (WantedPiece(0, 10), WantedPiece(2, 0))
    assert wants_from_json(wants_to_json(wants), MANIFEST) == wants
    assert wanted_bytes(wants, MANIFEST) == 91
    wrong = [
        (WantedPiece(3, 0),),
        (WantedPiece(-1, 0),),
        (WantedPiece(0, 100),),
        (WantedPiece(0, -1),),
        (WantedPiece(1, 0),) * 2,
    ]
    for case in (*wrong, (WantedPiece(1, 0), WantedPiece(0, 0))):
        with pytest.raises(BadInput):
            wants_from_json(wants_to_json(case), MANIFEST)
    for data in (b"x", b"[1]", b"[" * 100_000):
        with pytest.raises(BadInput):
            wants_from_json(data, MANIFEST)
