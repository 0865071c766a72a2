"""A stage while it comes in: through interruptions, damage, and pieces that lie here already."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from app.catalog.stages.cut import Cut, read_pieces
from app.catalog.stages.manifest import WantedPiece
from app.catalog.stages.stage_store import StageStore
from app.core.errors import BadInput, Busy, Damaged
from app.core.reasons import said
from backends.contract import Layers, Role
from tests.catalog.conftest import LIMIT_BYTES, Home
from tests.catalog.stage_files import expected, files, sent


def test_a_stage_arrives(cut: Cut, lender: Home) -> None:
    with lender.stages.receive(cut.manifest) as receiver:
        assert receiver.wanted_bytes == sum(piece.n_bytes for piece in cut.manifest.pieces)
        for chunk in sent(cut, receiver.wants):
            receiver.write(chunk)
        assert lender.stages.path(cut.manifest.id) is None
        path = receiver.finish()
    assert path.read_bytes() == expected(cut)
    assert lender.stages.path(cut.manifest.id) == path
    assert files(lender) == [".gguf", ".json"]


@pytest.mark.parametrize("seed", range(25))
def test_interrupted_anywhere_it_goes_on(cut: Cut, lender: Home, seed: int) -> None:
    """Broken off again and again, by a closed link or a killed process, it still arrives."""
    chance = random.Random(seed)
    largest = max(piece.n_bytes for piece in cut.manifest.pieces)
    moved, rounds, allowed = 0, 0, sum(piece.n_bytes for piece in cut.manifest.pieces)
    while lender.stages.path(cut.manifest.id) is None:
        rounds += 1
        store = StageStore(lender.folder / "stages", LIMIT_BYTES)  # a new process
        receiver = store.receive(cut.manifest)
        data = b"".join(read_pieces(cut, receiver.wants))
        stop = chance.randrange(len(data) + 1) if rounds < 6 else len(data)
        for at in range(0, stop, 7000):
            receiver.write(data[at : min(at + 7000, stop)])
        moved += stop
        if stop == len(data):
            receiver.finish()
        elif chance.random() < 0.7:
            receiver.close()
        else:  # killed: nothing is noted of the piece it was in
            receiver._shut()
            allowed += largest
    path = lender.stages.path(cut.manifest.id)
    assert path
    assert path.read_bytes() == expected(cut)
    assert moved <= allowed


def test_an_interrupted_piece_goes_on_where_it_broke_off(cut: Cut, lender: Home) -> None:
    first = cut.manifest.pieces[0].n_bytes
    with lender.stages.receive(cut.manifest) as receiver:
        receiver.write(b"".join(read_pieces(cut, receiver.wants))[: first + 100])
    with lender.stages.receive(cut.manifest) as receiver:
        assert receiver.wants[0] == WantedPiece(1, 100)


def test_what_was_damaged_while_waiting_is_fetched_again(cut: Cut, lender: Home) -> None:
    with lender.stages.receive(cut.manifest) as receiver:
        receiver.write(b"".join(read_pieces(cut, receiver.wants))[:-10])
    part = lender.folder / "stages" / f"{cut.manifest.id}.part"
    data = bytearray(part.read_bytes())
    data[cut.manifest.pieces[1].offset + 5] ^= 1
    part.write_bytes(data)
    with lender.stages.receive(cut.manifest) as receiver:
        assert receiver.wants[0] == WantedPiece(1, 0)
        assert len(receiver.wants) == 2
        for chunk in sent(cut, receiver.wants):
            receiver.write(chunk)
        assert receiver.finish().read_bytes() == expected(cut)


@pytest.mark.parametrize("n_bytes", [0, 3, 5_000_000])
def test_a_torn_or_lying_journal_does_no_harm(cut: Cut, lender: Home, n_bytes: int) -> None:
    with lender.stages.receive(cut.manifest) as receiver:
        receiver.write(b"".join(read_pieces(cut, receiver.wants))[:5000])
    journal = lender.folder / "stages" / f"{cut.manifest.id}.have"
    journal.write_bytes(b"1 %d\nx y\n-1 5\n999 5\n1 2 3\n2 9" % n_bytes)
    for _ in range(2):  # a partial piece that was wrong is found at its end
        with lender.stages.receive(cut.manifest) as receiver:
            try:
                for chunk in sent(cut, receiver.wants):
                    receiver.write(chunk)
            except Damaged:
                continue
            assert receiver.finish().read_bytes() == expected(cut)
            return
    pytest.fail("it never arrived")


def test_a_wrong_piece_is_thrown_away_alone(cut: Cut, lender: Home) -> None:
    pieces = cut.manifest.pieces
    with lender.stages.receive(cut.manifest) as receiver:
        data = bytearray(b"".join(read_pieces(cut, receiver.wants)))
        bad = sum(piece.n_bytes for piece in pieces[:3]) + 10
        data[bad] ^= 1
        with pytest.raises(Damaged) as error:
            receiver.write(bytes(data))
        assert error.value.reason.facts["piece"] == 3
        assert said(error.value)
        with pytest.raises(BadInput):
            receiver.write(b"more")
    with lender.stages.receive(cut.manifest) as receiver:
        assert receiver.wants == tuple(WantedPiece(index, 0) for index in range(3, len(pieces)))
    assert files(lender) == [".have", ".part"]


def test_no_stage_before_all_has_come_and_nothing_beyond(cut: Cut, lender: Home) -> None:
    with lender.stages.receive(cut.manifest) as receiver:
        with pytest.raises(Damaged) as error:
            receiver.finish()
        assert error.value.reason.code == "stage_unfinished"
    with lender.stages.receive(cut.manifest) as receiver:
        for chunk in sent(cut, receiver.wants):
            receiver.write(chunk)
        with pytest.raises(BadInput) as flood:
            receiver.write(b"x")
        assert flood.value.reason.code == "stage_flood"
        receiver.finish()


def test_moving_a_boundary_moves_only_the_new_layers(home: Home, lender: Home) -> None:
    entry = home.add("m", layers=8)
    lender.stages.write_stage(home.shelf.cut(entry, Layers(2, 5), Role.MIDDLE))
    moved = home.shelf.cut(entry, Layers(4, 7), Role.MIDDLE)
    with lender.stages.receive(moved.manifest) as receiver:
        assert receiver.wanted_bytes == sum(entry.model.weights.layer_bytes[5:7])
        for chunk in sent(moved, receiver.wants):
            receiver.write(chunk)
        assert receiver.finish().read_bytes() == expected(moved)


def test_a_damaged_donor_gives_nothing(home: Home, lender: Home) -> None:
    entry = home.add("m", layers=8)
    old = lender.stages.write_stage(home.shelf.cut(entry, Layers(2, 5), Role.MIDDLE))
    old.write_bytes(bytes(old.stat().st_size))
    moved = home.shelf.cut(entry, Layers(3, 6), Role.MIDDLE)
    assert lender.stages.write_stage(moved).read_bytes() == expected(moved)


def test_tensors_of_an_own_model_file_are_used(home: Home, lender: Home, cut: Cut) -> None:
    entry = lender.shelf.import_file(home.folder / "m.gguf")
    hashes = frozenset(piece.sha256 for piece in cut.manifest.pieces)
    assert lender.shelf.donors(frozenset()) == {}
    assert set(lender.shelf.donors(hashes)) == set(entry.tensors.values())
    with lender.stages.receive(cut.manifest, lender.shelf.donors()) as receiver:
        assert [want.piece for want in receiver.wants] == [0]  # the placeholder is in no model
        for chunk in sent(cut, receiver.wants):
            receiver.write(chunk)
        assert receiver.finish().read_bytes() == expected(cut)
    Path(entry.path).unlink()
    assert lender.shelf.donors() == {}


def test_one_receiver_for_a_stage(cut: Cut, lender: Home) -> None:
    with lender.stages.receive(cut.manifest):
        with pytest.raises(Busy):
            lender.stages.receive(cut.manifest)
        lender.stages.remove(cut.manifest.id)
        assert ".part" in files(lender)
    lender.stages.receive(cut.manifest).discard()
    assert files(lender) == []
