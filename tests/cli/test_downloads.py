"""`poolhouse downloads` lists the queue with its sum, and pauses, resumes and orders it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.conftest import Said
from tests.cli.fake_node import FakeNode

Json = dict[str, Any]
GIB = 1 << 30


def item(ident: str, state: str, **more: Any) -> Json:
    return {"id": ident, "name": f"Model {ident}", "state": state, "done_bytes": GIB, "total_bytes": 4 * GIB} | more


LISTED = {
    "downloads": [
        item("a", "running", bytes_per_s=100 << 20, seconds_left=31),
        item("b", "waiting"),
        item("c", "paused"),
    ]
}


def test_the_list_ends_with_its_sum(poolhouse: Callable[..., Said], answering: Callable[..., FakeNode]) -> None:
    answering({("GET", "/downloads"): LISTED})
    lines = poolhouse("downloads").out.splitlines()
    assert lines[0].split() == ["Model", "State", "Size", "Left"]
    assert lines[1].split()[:3] == ["Model", "a", "running"]
    assert lines[-1] == "3 downloads, 3.0 GiB of 12.0 GiB, 1 min left."


def test_an_empty_list_says_how_to_begin(poolhouse: Callable[..., Said], answering: Callable[..., FakeNode]) -> None:
    answering({("GET", "/downloads"): {"downloads": []}})
    assert poolhouse("downloads").out.startswith("There are no downloads. `poolhouse pull NAME")


@pytest.mark.parametrize(
    ("words", "path", "body"),
    [
        (("--pause",), "/downloads/pause", None),
        (("--resume",), "/downloads/resume", None),
        (("model b", "--pause"), "/downloads/b/pause", None),
        (("c", "--resume"), "/downloads/c/resume", None),
        (("c", "--first"), "/downloads/c/move", {"before": "a"}),
        (("a", "--last"), "/downloads/a/move", {"before": None}),
    ],
)
def test_each_word_does_what_it_says(
    poolhouse: Callable[..., Said], answering: Callable[..., FakeNode], words: tuple[str, ...], path: str, body: Any
) -> None:
    posted: list[Any] = []

    def answer(order: Any) -> Json:
        posted.append(order)
        return LISTED

    answering({("GET", "/downloads"): LISTED, ("POST", path): answer})
    said = poolhouse("downloads", *words)
    assert said.code == 0, said.err
    assert len(posted) == 1
    if body is not None:
        assert posted == [body]


def test_words_that_exclude_each_other_are_refused(
    poolhouse: Callable[..., Said], answering: Callable[..., FakeNode]
) -> None:
    answering({("GET", "/downloads"): LISTED})
    assert "Give one of" in poolhouse("downloads", "--pause", "--resume").err
    assert "Add the name" in poolhouse("downloads", "--first").err


def test_an_unknown_name_is_said(poolhouse: Callable[..., Said], answering: Callable[..., FakeNode]) -> None:
    answering({("GET", "/downloads"): LISTED})
    said = poolhouse("downloads", "nobody", "--pause")
    assert said.code == 1
