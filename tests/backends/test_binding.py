"""Where the engine was never compiled, the sentence names the cure."""

from __future__ import annotations

import sys

import pytest

from backends.contract import StageError
from backends.llamacpp import binding


def test_an_engine_that_is_not_there_names_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    with pytest.raises(StageError, match=r"cannot be loaded: .*; run `make setup` in"):
        binding.load.__wrapped__()
