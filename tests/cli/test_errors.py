"""Tests of errors: one sentence on stderr, an exit code, and with --json one object on stdout."""

from __future__ import annotations

import json
import os
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest
import typer

from app import __version__
from app.cli.output import Output
from app.core.errors import KINDS
from tests.cli.answers import streamed
from tests.cli.fake_node import Failed, Lines, error

NOBODYS = Path("~nobody-of-this-name").absolute()  # as a shell leaves it: of a user that is not there

EVERY = [
    ("status",),
    ("machines",),
    ("lend",),
    ("lend", "--pause", "1h"),
    ("rename", "attic-pc", "loft"),
    ("roles", "attic-pc", "--lender"),
    ("models",),
    ("remove", "attic-pc", "--yes"),
    ("rm", "guide", "--yes"),
    ("plan", "guide"),
    ("load", "guide"),
    ("unload",),
    ("ask", "How?"),
    ("bench", "guide"),
    ("pair", "--open"),
    ("pair", "10.0.0.2:4242", "--code", "123456"),
]


@pytest.mark.parametrize("nothing", [["--home", ""], ["--home="], ["--home", " "]])
def test_a_home_without_a_name_is_not_the_folder_somebody_is_in(poolhouse: Any, nothing: list[str]) -> None:
    said = poolhouse("status", *nothing, at_home=False)
    assert (said.code, said.out) == (2, "")
    assert "The folder after --home is missing. Write --home DIR." in said.err


@pytest.mark.parametrize("command", EVERY)
def test_without_a_node_every_command_says_so(poolhouse: Any, home: Path, command: tuple[str, ...]) -> None:
    home.mkdir()
    opened = f"Open Poolhouse (`poolhouse --home {home}`)"
    started = f"or start one with `poolhouse node --home {home}`."
    sentence = f"No Poolhouse node is running for {home}. {opened}, {started}"
    said = poolhouse(*command)
    assert (said.code, said.out, said.err) == (1, "", f"{sentence}\n")
    said = poolhouse(*command, "--json")
    assert said.code == 1
    assert said.json["error"]["kind"] == "Unreachable"
    assert said.json["error"]["message"] == sentence


@pytest.mark.parametrize("command", [*EVERY, ("doctor",), ("pull",), ("chats", "status"), ("erase", "--yes")])
def test_a_home_that_is_not_there_is_named_and_not_made(poolhouse: Any, home: Path, command: tuple[str, ...]) -> None:
    said = poolhouse(*command)
    assert (said.code, said.out, home.exists()) == (1, "", False)
    assert said.err == (
        f"The folder {home} does not exist, so no Poolhouse node is running for it. Check the path. To create the "
        f"folder and start a node, open Poolhouse (`poolhouse --home {home}`) or run `poolhouse node --home {home}`.\n"
    )


def test_a_node_says_once_that_its_home_is_new(poolhouse: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.node.start.run", lambda *_: None)
    note = f"The folder {home} did not exist, so a new data folder is created there.\n"
    assert poolhouse("node").err == note
    assert poolhouse("node").err == ""


def test_the_window_says_that_its_home_is_new(poolhouse: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.cli.welcome.has_screen", lambda: True)
    monkeypatch.setattr("app.cli.welcome.require_libraries", lambda: None)
    monkeypatch.setattr("app.gui.app.application.start", lambda *_, **__: 0)
    assert poolhouse().err == f"The folder {home} did not exist, so a new data folder is created there.\n"


@pytest.mark.parametrize("command", ["status", "node"])
def test_a_home_that_cannot_be_one_is_told_with_the_cause(poolhouse: Any, home: Path, command: str) -> None:
    home.write_text("words", encoding="utf-8")
    assert poolhouse(command).err.startswith(f"{home} is a file, not a folder. Choose a folder with --home")


def test_a_home_that_cannot_be_made_is_told_with_the_cause(poolhouse: Any, home: Path) -> None:
    home.write_text("words", encoding="utf-8")
    below = home / "below"
    said = poolhouse("node", "--home", str(below), at_home=False)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith(f"The folder {below} cannot be used: ")
    assert said.err.endswith(". Fix the problem, or choose another folder with --home.\n")
    assert said.err.count("\n") == 1


def test_a_home_of_somebody_else_is_told_with_the_cause(
    poolhouse: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir()
    (home / "runtime.json").write_bytes(b"{}")

    def refused(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refused)
    said = poolhouse("status")
    assert said.code == 1
    assert said.err == (
        f"The folder {home} cannot be used: Permission denied. Fix the problem, or choose another folder with --home.\n"
    )


@pytest.mark.parametrize(
    ("number", "why", "sentence"),
    [
        (28, "No space left on device", "The disk is full (No space left on device). Free some space"),
        (30, "Read-only file system", "The disk can only be read (Read-only file system). "),
        (5, "Input/output error", "This computer reported an error: Input/output error."),
    ],
)
def test_what_the_system_refuses_is_told_with_a_cure(
    poolhouse: Any, home: Path, monkeypatch: pytest.MonkeyPatch, number: int, why: str, sentence: str
) -> None:
    async def refused(*_: object) -> None:
        raise OSError(number, why)

    home.mkdir()
    monkeypatch.setattr("app.network.identity.reset", refused)
    said = poolhouse("reset", "--yes")
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith(sentence)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"pid": 1}', b"\xff\xfe"])
def test_a_damaged_runtime_file_is_no_node(poolhouse: Any, home: Path, content: bytes) -> None:
    home.mkdir()
    (home / "runtime.json").write_bytes(content)
    assert "No Poolhouse node is running" in poolhouse("status").err


def test_a_crashed_node_left_its_file_behind(poolhouse: Any, home: Path) -> None:
    home.mkdir()
    gone = {"pid": 2**22 + 1, "port": 1, "token": "x", "version": "0.1.0"}
    (home / "runtime.json").write_text(json.dumps(gone))
    assert "No Poolhouse node is running" in poolhouse("status").err


def test_a_copied_home_has_no_node_of_its_own(poolhouse: Any, answering: Any, home: Path) -> None:
    """A renamed one still has."""
    answering({("GET", "/machines"): {"machines": []}})
    here = home.parent
    running = json.loads((home / "runtime.json").read_text())
    ours = {"home": str(home.resolve()), "folder": home.stat().st_ino}
    (home / "runtime.json").write_text(json.dumps(running | ours))
    shutil.copytree(home, here / "copy")
    assert poolhouse("machines").code == 0
    said = poolhouse("machines", "--home", str(here / "copy"), at_home=False)
    assert said.err.startswith(f"No Poolhouse node is running for {here / 'copy'}.")
    home.rename(here / "renamed")
    assert poolhouse("machines", "--home", str(here / "renamed"), at_home=False).code == 0
    (here / "renamed").rename(home)


def test_a_node_that_hangs_is_not_waited_for_in_silence(
    poolhouse: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node accepts the connection, and never answers."""
    monkeypatch.setattr("app.client.KNOWN_SECONDS", 1.0)
    home.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        port = deaf.getsockname()[1]
        runs = {"pid": os.getpid(), "port": port, "token": "x", "version": __version__}
        (home / "runtime.json").write_text(json.dumps(runs))
        said = poolhouse("status")
    assert said.code == 1
    assert said.err.startswith("The node has not responded for 1 seconds. Stop it (Ctrl-C in its terminal, or Quit")


def test_another_version_is_named(poolhouse: Any, answering: Any) -> None:
    answering({}, version="9.9")
    said = poolhouse("status")
    assert said.code == 1
    assert said.err.startswith("The node is running Poolhouse 9.9, but this command is from Poolhouse ")


@pytest.mark.parametrize("kind", KINDS)
def test_errors_keep_their_kind_and_get_their_sentence(poolhouse: Any, answering: Any, kind: str) -> None:
    sent = error(kind, "code_wrong", "Not used.", tries_left=2)
    answering({("POST", "/pairing/join"): Failed(409, sent)})
    said = poolhouse("pair", "10.0.0.2:1", "--code", "123 456", "--json")
    assert said.code == 1
    assert said.json["error"] == {
        "kind": kind, "code": "code_wrong", "facts": {"tries_left": 2},
        "message": (
            "The code is wrong. Enter the code that the other machine is showing now. Tries left: 2."
        ),
    }  # fmt: skip
    assert said.err == f"{said.json['error']['message']}\n"


def test_a_code_without_a_sentence_here_is_said_by_the_node(poolhouse: Any, answering: Any) -> None:
    sent = error("DoesNotFit", "from_the_future", "Too big by \x1b[31m27 GiB.", by=27)
    answering({("POST", "/plan"): Failed(409, sent)})
    said = poolhouse("plan", "guide")
    assert (said.code, said.err) == (1, "Too big by [31m27 GiB.\n")


def test_an_error_line_in_the_middle_of_work(poolhouse: Any, answering: Any) -> None:
    sent = error("DoesNotFit", "unknown_here", "attic-pc has no room.")
    answering({("POST", "/load"): Lines([{"error": sent}])})
    said = poolhouse("load", "guide", "--json")
    assert (said.code, said.err) == (1, "attic-pc has no room.\n")
    assert said.json["error"]["kind"] == "DoesNotFit"


def test_an_error_in_the_middle_of_an_answer_keeps_what_was_said(poolhouse: Any, answering: Any) -> None:
    lines = streamed("Open Pool", " and")
    lines.lines[-1] = {"error": error("StageLost", "unknown_here", "attic-pc is gone.")}
    answering({("POST", "/ask"): lines})
    said = poolhouse("ask", "How?")
    assert (said.code, said.out, said.err) == (1, "Open Pool and\n", "attic-pc is gone.\n")


@pytest.mark.parametrize("continues", [True, False])
def test_an_answer_that_broke_off_goes_on_where_it_was_if_the_person_wants_it(
    poolhouse: Any, answering: Any, monkeypatch: pytest.MonkeyPatch, continues: bool
) -> None:
    lines = streamed("Open Pool", " and")
    lines.lines[0]["delta"]["thought"] = "Hm."
    lines.lines[-1] = {"error": error("StageLost", "unknown_here", "attic-pc is gone.")}
    rest = iter([lines, streamed(" press Add.")])
    questions: list[str] = []

    def confirm(question: str, **_: Any) -> bool:
        questions.append(question)
        return continues

    monkeypatch.setattr(Output, "can_ask", True)
    monkeypatch.setattr(typer, "confirm", confirm)
    node = answering({("POST", "/ask"): lambda _: next(rest)})
    said = poolhouse("ask", "How?", "--system", "Be brief.")
    bodies = [body for _, path, body in node.asked if path == "/ask"]
    assert questions == ["Continue the answer from here?"]
    assert len(bodies) == 1 + continues
    assert said.code == (0 if continues else 1)
    assert said.err.startswith("attic-pc is gone.\n")
    if continues:
        assert said.out == "Open Pool and\n press Add.\n"
        begun = {"role": "assistant", "content": "Open Pool and", "thought": "Hm."}
        assert bodies[1]["messages"] == [*bodies[0]["messages"], begun]


@pytest.mark.parametrize("breaks", [1, 2])
def test_an_answer_that_broke_off_keeps_all_its_parts_and_its_limit(
    poolhouse: Any, answering: Any, monkeypatch: pytest.MonkeyPatch, breaks: int
) -> None:
    parts = [streamed("Open Pool", " and"), streamed(" press", " the", " sign")][:breaks]
    for number, lines in enumerate(parts):
        lines.lines[0]["delta"]["thought"] = f"Hm {number}. "
        lines.lines[-1] = {"error": error("StageLost", "unknown_here", "attic-pc is gone.")}
    rest = iter([*parts, streamed(" Add.")])
    monkeypatch.setattr(Output, "can_ask", True)
    monkeypatch.setattr(typer, "confirm", lambda *_, **__: True)
    node = answering({("POST", "/ask"): lambda _: next(rest)})
    assert poolhouse("ask", "How?", "--max-tokens", "20").code == 0
    bodies = [body for _, path, body in node.asked if path == "/ask"]
    assert [body["max_tokens"] for body in bodies] == [20, 18, 15][: breaks + 1]
    question, begun = bodies[-1]["messages"]
    assert question == {"role": "user", "content": "How?"}
    text, thought = ("Open Pool and", "Hm 0. ") if breaks == 1 else ("Open Pool and press the sign", "Hm 0. Hm 1. ")
    assert begun == {"role": "assistant", "content": text, "thought": thought}


def test_an_answer_without_a_word_and_a_raw_prompt_are_not_continued(
    poolhouse: Any, answering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Output, "can_ask", True)
    monkeypatch.setattr(typer, "confirm", lambda *_, **__: pytest.fail("nothing can be continued"))
    lost = {"error": error("StageLost", "unknown_here", "attic-pc is gone.")}
    answering({("POST", "/ask"): lambda _: Lines([lost])})
    assert poolhouse("ask", "How?").err == "attic-pc is gone.\n"
    answering({("POST", "/ask"): lambda _: Lines([{"delta": {"text": "Open", "token_ids": [1]}}, lost])})
    assert poolhouse("ask", "How?", "--raw").code == 1


@pytest.mark.parametrize("then", ["end", "drop"])
def test_a_node_that_goes_away_in_the_middle(poolhouse: Any, answering: Any, home: Path, then: str) -> None:
    answering({("POST", "/ask"): Lines([{"delta": {"text": "Open", "token_ids": [1]}}], then)})
    said = poolhouse("ask", "How?")
    assert (said.code, said.out) == (1, "Open\n")
    assert said.err == (
        f"The node stopped before it could respond. Start it again with `poolhouse node --home {home}`.\n"
    )


@pytest.mark.parametrize("answer", [{"machines": 5}, {"node": None}])
def test_an_answer_of_another_shape_is_the_nodes_fault(poolhouse: Any, answering: Any, answer: Any) -> None:
    answering({("GET", "/status"): answer})
    said = poolhouse("status")
    assert said.code == 1
    assert said.err.startswith("The node had an internal error")
    assert said.err.count("\n") == 1


def test_a_fault_of_the_node_without_a_json_answer(poolhouse: Any, answering: Any) -> None:
    answering({})  # the server's table has no such answer: 500 in plain text
    said = poolhouse("models")
    assert said.code == 1
    assert said.err.startswith("The node had an internal error")


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (("load",), "Missing argument 'MODEL'. Usage: poolhouse load [OPTIONS] MODEL. For example: "),
        (
            ("rename", "attic-pc"),
            "Missing argument 'NAME'. Usage: poolhouse rename [OPTIONS] MACHINE NAME. For example: ",
        ),
        *[
            ((command,), f"For example: poolhouse {command} ")
            for command in ("rename", "roles", "remove", "plan", "import", "rm", "bench", "ask")
        ],
        (("load", "m", "--split", "5,x"), "'5,x' is not a list of positive whole numbers. Write it like 5,6,5."),
        (("load", "m", "--split", "5,0"), "'5,0' is not a list of positive whole numbers. Write it like 5,6,5."),
        (("load", "m", "--split", ""), "'' is not a list of positive whole numbers."),
        (("bench", "m", "--split", ""), "'' is not a list of positive whole numbers."),
        (("bench", "m", "--streams", "0"), "Write it like 1,8."),
        (("node", "--name", "a\nb"), "one line of at most 64 characters"),
        (("node", "--name", "n" * 65), "one line of at most 64 characters"),
        (("load", "m", "--context", "0"), "--context: Give a whole number, 1 or more."),
        (("load", "m", "--context", "4k"), "--context: Give a whole number, 1 or more."),
        (("lend", "--battery", "200"), "--battery: Give a whole number from 0 to 100."),
        (("load", "m", "--context"), "--context: Give a whole number, 1 or more."),
        (("ask", "x", "-t", "abc"), "Give a number from 0 to 10."),
        (("lend", "--idle", "5"), "'5' needs a unit: write 5s"),
        (("lend", "2GiB"), "It is not clear what '2GiB' is for. To lend that much, write --memory 2GiB."),
        (("lend", "2h"), "It is not clear what '2h' is for. To pause for that long, write --pause 2h."),
        (("lend", "30m"), "write --memory 30m. To pause for that long, write --pause 30m."),
        (("lend", "much"), "It is not clear what 'much' is for. `poolhouse lend "),
        (("lend", "--drain", "1h"), "at most 10m to finish, but '1h' is longer"),
        (("use-again", ""), "MACHINE: The name is empty. Give a name."),
        (("rename", " ", "loft"), "MACHINE: The name is empty."),
        (("rename", "loft", ""), "NAME: A name has 1 to 64 visible characters."),
        (("rename", "loft", "x" * 65), "NAME: A name has 1 to 64 visible characters."),
        (("rm", ""), "MODEL: The name is empty."),
        (("api", "key", "", "--remove"), "The name is empty."),
        (("upstream", "test", ""), "NAME: The name is empty."),
        (("folder", ""), "The folder is empty. Write `.` for the current one."),
        (("load", "m", "--number", "f8"), "'f8' is not one of 'auto', 'f16', 'f32', 'q8'"),
        (("pair", "--open", "10.0.0.1"), "Give either --open, or the address"),
        (("pair", "--open", "--code", "123456"), "--open shows a new code."),
        (("pair", "10.0.0.1:1", "--code", "12345"), "A pairing code has six digits."),
        (("pair", "10.0.0.1:1"), "Give the code with --code 123456."),
        (("ask", "x", "--raw", "--system", "y"), "--system needs the chat template"),
        (("node", "--lend", "much"), "'much' is not a size. Write it like 2GiB or 512MiB."),
        (("nothing",), "No such command 'nothing'. `poolhouse --help` lists them all."),
        (("api", "foo"), "No such command 'foo'. `poolhouse api --help` lists them all."),
        (("chta",), "No such command 'chta'. Did you mean 'chats'? `poolhouse --help` lists them all."),
        (("api", "statsu"), "No such command 'statsu'. Did you mean 'status'?"),
        (
            ("ask", "Why", "is", "the", "sky", "blue?"),
            "Got unexpected extra argument(s) (is the sky blue?). Put an argument with spaces in quotes. Usage: ",
        ),
        (
            ("rename", "attic-pc", "the", "loft"),
            "Got unexpected extra argument(s) (loft). Put an argument with spaces in quotes. Usage: ",
        ),
        (("ask", "x", "-t", "nan"), "Give a number from 0 to 10."),
        (("pull", "--cancel"), "Add the name of the model: `poolhouse pull MODEL --home "),
        (("pull", "--name", "x"), "Add the name of the model: `poolhouse pull MODEL --home "),
        (("lend", "--pause", "0"), "The pause cannot be 0."),
        (("status", "--x"), "No such option: --x. `poolhouse status --help` lists them all."),
        (("status", "--jsn"), "No such option: --jsn. Did you mean --json?"),
        (("ask", "x", "--max", "9"), "No such option: --max. Did you mean --max-tokens?"),
        (("ask", "x", "--top-p", "1"), "No such option: --top-p. `poolhouse ask --help` lists them all."),
        (("node", "--stop"), "No such option: --stop. `poolhouse node --help` lists them all."),
    ],
)
def test_wrong_usage(poolhouse: Any, answering: Any, command: tuple[str, ...], sentence: str) -> None:
    answering({})
    said = poolhouse(*command)
    assert said.code == 2
    assert said.out == ""
    assert sentence in said.err
    assert "Invalid value" not in said.err
    assert said.err.count("\n") == 1
    said = poolhouse(*command, "--json")
    assert said.code == 2
    assert sentence in said.json["error"]["message"]


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (("import", "/no/such.gguf"), "The file /no/such.gguf does not exist. "),
        (("import", "~nobody-of-this-name/m.gguf"), f"The file {NOBODYS / 'm.gguf'} does not exist. "),
        (("folder", "~nobody-of-this-name"), f"The folder {NOBODYS} does not exist. Check its name"),
        (("import", os.devnull), f"{os.devnull} is not a regular file. "),
        (("ask", "  "), "No prompt was given. "),
    ],
)
def test_input_that_cannot_be_used(poolhouse: Any, answering: Any, command: tuple[str, ...], sentence: str) -> None:
    answering({})
    said = poolhouse(*command)
    assert said.code == 1
    assert said.err.startswith(sentence)


def test_a_home_that_is_a_file(poolhouse: Any, home: Path) -> None:
    home.write_text("x")
    assert poolhouse("status").code == 1
