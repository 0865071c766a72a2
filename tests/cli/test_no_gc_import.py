"""A large import is not swept through, and what follows is, as before."""

from __future__ import annotations

import gc

import pytest

from app.cli.commands.node_commands import without_gc


def test_what_is_imported_is_left_alone_and_what_comes_later_is_not() -> None:
    before = gc.get_freeze_count()
    with without_gc():
        assert not gc.isenabled()
        made: list[object] = [[]]
    assert gc.isenabled()
    assert gc.get_freeze_count() > before
    assert made[0] not in gc.get_objects()


def test_an_import_that_fails_leaves_nothing_switched_off() -> None:
    with pytest.raises(ImportError), without_gc():
        raise ImportError
    assert gc.isenabled()
