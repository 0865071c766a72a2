"""A command that is named to be typed here carries the home; one for another machine does not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.cli import terminal_text
from app.cli.commands.node_commands import _print_ready
from app.core.reasons import SENTENCES


@pytest.fixture
def remembered_home() -> Iterator[None]:
    terminal_text.remember_home(Path("/homes/a b"))
    yield
    terminal_text.remember_home(None)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Try `poolhouse status`.", "Try `poolhouse status --home X`."),
        (
            "`poolhouse pair --open` here, and `poolhouse pair ADDRESS` on the other machine.",
            "`poolhouse pair --home X --open` here, and `poolhouse pair ADDRESS` on the other machine.",
        ),
        ("Use `poolhouse api on --port`.", "Use `poolhouse api on --home X --port`."),
        ("Run `poolhouse reset` there, then pair.", "Run `poolhouse reset` there, then pair."),
        ("Run `poolhouse share` on attic, then ask.", "Run `poolhouse share` on attic, then ask."),
        ("Run `poolhouse share` on this machine.", "Run `poolhouse share --home X` on this machine."),
        ("Run `poolhouse node --home /y`.", "Run `poolhouse node --home /y`."),
        ("Open Poolhouse (`poolhouse`).", "Open Poolhouse (`poolhouse --home X`)."),
        ("Run `poolhouse demo`.", "Run `poolhouse demo`."),
        ("`make setup` and --json", "`make setup` and --json"),
    ],
)
def test_a_command_for_this_machine_gets_the_home(remembered_home: None, sentence: str, expected: str) -> None:
    option = terminal_text.home_option()
    assert terminal_text.with_home(sentence) == expected.replace(" --home X", option)
    terminal_text.remember_home(None)
    assert terminal_text.with_home(sentence) == sentence


def test_an_example_that_is_told_after_a_mistake_is_for_this_home(poolhouse: Any, home: Path) -> None:
    home.mkdir()
    said = poolhouse("load")
    assert said.code == 2
    assert said.err.rstrip().endswith(f"For example: poolhouse load llama-3.2-3b{terminal_text.home_option()}")
    assert str(home) in said.err


def test_a_home_is_told_whole_and_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remembered_home: None
) -> None:
    monkeypatch.chdir(tmp_path)
    terminal_text.remember_home(Path("a b"))
    quote = '"' if os.name == "nt" else "'"
    assert terminal_text.home_option() == f" --home {quote}{tmp_path.resolve() / 'a b'}{quote}"


def test_which_sentences_send_to_another_machine(remembered_home: None) -> None:
    named = {code for code, words in SENTENCES.items() if "`poolhouse " in words}
    plain = {code for code in named if terminal_text.with_home(SENTENCES[code]) == SENTENCES[code]}
    assert plain == {
        "admin_stays", "copy_not_there", "discovery_identity_copied", "guest_alone", "home_missing",
        "pairing_nobody_near",
        "lend_no_role", "role_missing", "role_missing_here",
        "guest_model_not_loaded", "guest_model_stays", "guest_embedding_missing", "guest_upstream_spent",
        "host_answers_not",
        "guest_upstream_off", "identity_copied",
    }  # fmt: skip


def test_a_node_that_is_ready_says_its_home(remembered_home: None, capsys: pytest.CaptureFixture[str]) -> None:
    _print_ready({"name": "den-pc"})
    option = terminal_text.home_option()
    assert capsys.readouterr().out == (
        f"den-pc is ready. To see its status, run `poolhouse status{option}` in another terminal. To add a "
        f"computer, run `poolhouse pair{option} --open`, which shows a code and an address. Enter both with "
        "`poolhouse pair ADDRESS` on that computer, or under “Join a household” in its window. Ctrl-C stops the node.\n"
    )


def test_what_allows_sharing_has_its_home(poolhouse: Any, answering: Any) -> None:
    answering({("GET", "/settings"): {"share_models": False}})
    output = poolhouse("share").out
    assert f"`poolhouse share on{terminal_text.home_option()}` allows them to." in " ".join(output.split())


def test_the_next_command_has_its_own_home(poolhouse: Any, home: Path) -> None:
    poolhouse("status")
    assert str(home) in terminal_text.home_option()
    poolhouse("--version", at_home=False)
    assert terminal_text.home_option() == ""


def test_without_a_screen_the_steps_name_the_home(poolhouse: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert f"--home {home} to each command except the demo" in poolhouse("--json").json["note"]
