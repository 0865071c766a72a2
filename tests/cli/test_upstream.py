"""`poolhouse upstream`: what it asks the node, and what it says."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

ONE = {"name": "barn", "url": "https://barn.example/v1", "models": {"big": "gpt-x", "guide": "guide"}, "on": False,
       "cap_tokens": 100_000, "spent_tokens": 2_500, "own_certificate": False, "has_key": True}  # fmt: skip


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOLHOUSE_UPSTREAM_KEY", "sk-secret")


def test_adding_one(poolhouse: Any, answering: Any, tmp_path: Path) -> None:
    node = answering({("POST", "/api/upstreams"): {"upstreams": [ONE]}})
    pem = tmp_path / "barn.pem"
    pem.write_text("-----BEGIN CERTIFICATE-----", "utf-8")
    done = poolhouse(
        "upstream", "add", "barn", "https://barn.example/v1", "--model", "big=gpt-x", "--model",
        "guide", "--cap-tokens", "100000", "--certificate", str(pem),
    )  # fmt: skip
    assert done.code == 0, done.err
    said = " ".join(done.out.split())
    assert "is off; `poolhouse upstream on barn" in said
    assert said.startswith("barn was added with a key. barn, at ")
    assert "Models: big (there: gpt-x), guide; 2,500 of 100,000 tokens spent. Key: yes." in said
    assert "sk-secret" not in done.out
    ((_, _, body),) = node.asked
    assert body == {
        "name": "barn", "url": "https://barn.example/v1", "models": {"big": "gpt-x", "guide": "guide"},
        "cap_tokens": 100_000, "key": "sk-secret", "certificate": "-----BEGIN CERTIFICATE-----",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("url", "is_bare"),
    [
        ("https://barn.example", True), ("https://barn.example:8443/ ", True), ("https://barn.example/v1/", False),
        ("https://barn.example/v1beta/openai", False),
    ],
)  # fmt: skip
def test_who_leaves_the_path_out_hears_what_most_have(poolhouse: Any, answering: Any, url: str, is_bare: bool) -> None:
    answering({("POST", "/api/upstreams"): {"upstreams": [ONE]}})
    done = poolhouse("upstream", "add", "barn", url, "--model", "x", "--cap-tokens", "9")
    said = " ".join(done.out.split())
    assert ("end with /v1, but this one does not; `poolhouse upstream test barn" in said) == is_bare


@pytest.mark.parametrize(
    ("data", "stored", "expected"),
    [
        (b"sk-piped\r\nnot this\n", "sk-piped", "with a key"),
        (b"sk-piped", "sk-piped", "with a key"),
        (b"", "", "without a key"),
        (b"x" * 1001, None, "A key has at most 1000 characters."),
    ],
)
def test_its_key_comes_through_a_pipe(
    poolhouse: Any, answering: Any, monkeypatch: pytest.MonkeyPatch, data: bytes, stored: str | None, expected: str
) -> None:  # fmt: skip
    monkeypatch.delenv("POOLHOUSE_UPSTREAM_KEY")
    node = answering({("POST", "/api/upstreams"): {"upstreams": [ONE | {"has_key": bool(stored)}]}})
    ours, theirs = os.pipe()
    with open(theirs, "wb") as pipe:
        pipe.write(data)
    with open(ours, encoding="utf-8") as pipe:
        monkeypatch.setattr(sys, "stdin", pipe)
        done = poolhouse("upstream", "add", "barn", "https://x/v1", "--model", "a", "--cap-tokens", "5")
    assert expected in done.out + done.err
    assert [body["key"] for _, _, body in node.asked] == ([] if stored is None else [stored])


def test_the_rest(poolhouse: Any, answering: Any) -> None:
    none: dict[str, Any] = {"upstreams": []}
    on = {"upstreams": [ONE | {"on": True}]}
    node = answering(
        {("GET", "/api/upstreams"): none, ("POST", "/api/upstreams/barn"): on, ("DELETE", "/api/upstreams/barn"): none}
    )
    assert "No other server is used" in poolhouse("upstream", "list").out
    assert ", is on." in poolhouse("upstream", "on", "barn").out
    poolhouse("upstream", "off", "barn")
    poolhouse("upstream", "change", "barn", "--cap-tokens", "5", "--forget-spent")
    assert poolhouse("upstream", "remove", "barn", "--json").json == none
    assert [body for _, _, body in node.asked if body] == [
        {"on": True}, {"on": False}, {"cap_tokens": 5, "forget_spent": True},
    ]  # fmt: skip


def test_what_it_lacks_is_told_with_the_command_that_mends_it(poolhouse: Any, answering: Any, home: Path) -> None:
    result = {"name": "barn", "models": ["a"], "missing": ["gpt-x"]}
    answering({("POST", "/api/upstreams/barn/test"): result})
    said = poolhouse("upstream", "test", "barn").out
    assert "does not have gpt-x. " in said
    assert f"`poolhouse upstream add barn --home {home}`" in said


SPEED = {"at": 1_790_000_000.0, "prompt_tokens": 310, "ttft_s": 0.25, "decode_tok_s": 30.0, "spent_tokens": 1_139,
         "at_once": [{"streams": 1, "tok_s": 30.0}, {"streams": 2, "tok_s": 57.0}]}  # fmt: skip


def test_a_measurement_says_its_cost_and_its_figures(poolhouse: Any, answering: Any) -> None:
    node = answering({
        ("POST", "/api/upstreams/barn/measure"): {"name": "barn", "model": "big", "speed": SPEED},
        ("GET", "/api/upstreams"): {"upstreams": [ONE | {"speeds": {"big": SPEED}}]},
    })  # fmt: skip
    figures = "first token after 0.25 s (310 tokens of prompt), 30.0 tok/s for one answer, 57.0 tok/s for 2 at once"
    done = poolhouse("upstream", "measure", "barn", "--model", "big", "--yes")
    assert " ".join(done.out.split()) == f"barn with big: {figures}. This used 1,139 tokens."
    assert [body for _, _, body in node.asked] == [{"model": "big"}]
    said = " ".join(poolhouse("upstream", "list").out.split())
    assert f"with big: {figures}." in said
    said = " ".join(poolhouse("upstream", "measure", "--help").out.split())
    assert "uses up to 3,000 tokens" in said


def test_a_file_that_is_not_there_is_said_in_a_sentence(poolhouse: Any, answering: Any) -> None:
    answering({})
    done = poolhouse("upstream", "add", "barn", "https://x/v1", "--model", "a", "--cap-tokens", "5",
                     "--certificate", "/nowhere/x.pem")  # fmt: skip
    assert done.code == 1
    assert "No such file" in done.err
