"""Every command against a node that answers: what is asked of it, and what a person then reads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.api.plans import AnswerOutcome
from app.api.responses import Answer
from app.api.snapshot import ForecastErrors
from app.cli.commands.ask_command import _note_figures
from app.cli.views.status_view import forecasts_view
from app.decoding import convert
from tests.cli.answers import ANSWER, ATTIC, DEN, KITCHEN, LOADED, MACHINES, MODELS, PLAN, SNAPSHOT, progress, streamed
from tests.cli.fake_node import Lines, has_all_of


def test_status_shows_machines_memory_and_layers(poolhouse: Any, answering: Any) -> None:
    answering({("GET", "/status"): SNAPSHOT})
    said = poolhouse("status")
    assert said.code == 0
    assert said.out == STATUS
    assert said.err == ""


STATUS = """\
Ready. guide is loaded on 2 machines. 1 answering, 2 waiting.
den-pc · Poolhouse 0.1.0 · 192.168.1.20:4242

Machine             State    Used / lent to others      Link
den-pc (this)       ready    ██░░░░░░░░ 2.0 of 8.0 GiB
attic-pc            working  ██░░░░░░░░ 1.0 of 4.0 GiB  0.4 ms
kitchen[31m-laptop  paused   nothing                    not measured
kitchen[31m-laptop: Paused: on battery (48%).

guide · split over 2 machines · context 2,048 · 8 at once · f16
Machine                    Layers  Needed / available
den-pc    ████░░░░████  1–4, 9–12  █░░░░░░░░░ 11.0 MiB of 8.0 GiB
attic-pc  ░░░░████░░░░        5–8  █░░░░░░░░░ 5.0 MiB of 4.0 GiB
"""


def test_status_shows_the_links_between_others(poolhouse: Any, answering: Any) -> None:
    link = {"round_trip_seconds": 0.0004, "measured_round_trip_seconds": 0.0004, "kind": "wifi",
            "out_bytes_per_s": 117e6, "in_bytes_per_s": 5.9e6}  # fmt: skip
    between = {KITCHEN: {ATTIC: link, "9" * 64: link}}  # and one to a machine that is not known
    answering({("GET", "/status"): SNAPSHOT | {"links_between": between}})
    shown = poolhouse("status").out
    assert "attic-pc – kitchen[31m-laptop: 47 Mbit/s, 0.4 ms, Wi-Fi" in shown
    assert shown.count(" – ") == 1


def test_status_shows_what_came_of_forecasts(poolhouse: Any, answering: Any) -> None:
    last = {
        "prompt_tokens": 9, "output_tokens": 30,
        "forecast_ttft_s": 0.5, "ttft_s": 0.4, "forecast_tok_s": 12.0, "tok_s": 15.0,
    }  # fmt: skip
    assert "Last answer (1 prompt token, 30 in the answer)" in " ".join(
        str(line) for line in forecasts_view(convert(last | {"prompt_tokens": 1}, AnswerOutcome), ForecastErrors())
    )
    known = {"answers": 7, "ttft_error": 0.2, "decode_error": 0.125}
    loaded = SNAPSHOT["loaded"] | {"last_answer": last}
    answering({("GET", "/status"): SNAPSHOT | {"forecasts": known, "loaded": loaded}})
    shown = " ".join(poolhouse("status").out.split())
    assert (
        "Last answer (9 prompt tokens, 30 in the answer): first token after 0.40 s, forecast 0.4–0.6 s; "
        "then 15.0 tok/s, forecast 10–15 tok/s." in shown
    )
    quick = forecasts_view(convert(last | {"ttft_s": 0.004}, AnswerOutcome), ForecastErrors())
    assert "first token after 4.0 ms, forecast" in str(quick[0])
    broken = forecasts_view(convert(last | {"interruptions": 1}, AnswerOutcome), ForecastErrors())
    assert str(broken[0]).endswith("forecast 10–15 tok/s. This includes the time it took to replace a lost machine.")
    assert "Over 7 answers, the median error of the forecast was 20% for the first token and 12% for the rest." in shown
    far = forecasts_view(None, ForecastErrors(answers=7, ttft_error=80.09, decode_error=1.0))
    assert "was a factor of 81 for the first token and 100% for the rest." in str(far[0])


def test_a_guest_s_status_and_shelf_say_who_answers(poolhouse: Any, answering: Any) -> None:
    offered = [{"name": "guide", "machine": "den-pc"}, {"name": "other", "machine": "den-pc"}]
    answering({
        ("GET", "/status"): {**SNAPSHOT, "loaded": None, "hosts": ["den-pc"]},
        ("GET", "/models"): {"models": [], "offered": offered},
    })  # fmt: skip
    assert poolhouse("status").out.startswith("Ready. Answers come from den-pc.")
    assert poolhouse("models").out.startswith("den-pc answers with guide, other.\nOn this machine:\n")


def test_status_json_is_what_the_node_said(poolhouse: Any, answering: Any) -> None:
    answering({("GET", "/status"): SNAPSHOT})
    assert has_all_of(poolhouse("status", "--json").json, SNAPSHOT)


@pytest.mark.parametrize(
    ("loaded", "sentence"),
    [
        (None, "No model is loaded. Load one with `poolhouse load NAME`."),
        ({**LOADED, "state": "loading"}, "Loading guide."),
        (
            {**LOADED, "state": "lost", "reason": "attic-pc stopped responding."},
            "guide was lost. attic-pc stopped responding. The next question will load it again.",
        ),
        ({**LOADED, "stages": LOADED["stages"][:1]}, "Ready. guide is loaded on this machine."),
    ],
)
def test_status_says_what_the_pool_can_do(
    poolhouse: Any, answering: Any, home: Path, loaded: Any, sentence: str
) -> None:
    sentence = sentence.replace("NAME", f"NAME --home {home}")
    answers = {"running": 0, "waiting": 0}
    answering({("GET", "/status"): {**SNAPSHOT, "loaded": loaded, "answers": answers}})
    assert " ".join(poolhouse("status").out.split()).startswith(sentence)  # it may take two lines


def test_a_lender_s_status_says_for_whom_it_holds_layers(poolhouse: Any, answering: Any) -> None:
    node = SNAPSHOT["node"]
    lending = node["lending"] | {"used_by": ["attic-pc", "kitchen"]}
    answering({("GET", "/status"): SNAPSHOT | {
        "loaded": None, "answers": {"running": 0, "waiting": 0}, "node": node | {"lending": lending},
    }})  # fmt: skip
    first = poolhouse("status").out.splitlines()[0]
    assert first == "Lending: this machine holds layers for attic-pc, kitchen."


def test_machines(poolhouse: Any, answering: Any) -> None:
    answering({("GET", "/machines"): {"machines": list(MACHINES.values())}})
    said = poolhouse("machines")
    assert said.code == 0
    assert [line.split()[0] for line in said.out.splitlines()[:3]] == [
        "Machine", "den-pc", "attic-pc"
    ]  # fmt: skip
    assert max(len(line) for line in said.out.splitlines()) <= 80


def test_machines_in_short_lines_cut_nothing(poolhouse: Any, answering: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    den = MACHINES[DEN] | {
        "name": "the-desktop-in-the-study", "address": None,
        "device": "AMD Ryzen 9 7950X3D 16-Core Processor, 32 threads, of the second computer",
    }  # fmt: skip
    attic = MACHINES[ATTIC] | {
        "name": "the-old-tower-under-the-roof", "address": "192.168.178.121:47623",
        "roles": ["admin", "host", "lender"],
    }  # fmt: skip
    answering({("GET", "/machines"): {"machines": [den, attic]}})
    for columns in ("80", "60", "200"):
        monkeypatch.setenv("COLUMNS", columns)
        said = poolhouse("machines").out
        assert max(len(line) for line in said.splitlines()) <= int(columns)
        assert "…" not in said
        assert " 192.168.178.121:47623" in said
        joined = "".join(said.split())
        for words in (den["device"], "lender"):
            assert "".join(words.split()) in joined
        assert ("the-desktop-in-the-study: AMD" in said) == (columns != "200")


def test_remove_takes_names_with_any_sign(poolhouse: Any, answering: Any) -> None:
    removed = {"removed": {"id": ATTIC, "name": "a/b ?"}}
    node = answering({("DELETE", "/machines/a%2Fb%20%3F"): removed})
    said = poolhouse("remove", "a/b ?", "--yes")
    assert (said.code, said.out) == (0, "a/b ? is no longer part of the household.\n")
    assert node.asked == [("DELETE", "/machines/a%2Fb%20%3F", {})]


def test_models(poolhouse: Any, answering: Any) -> None:
    answering({("GET", "/models"): {"models": MODELS}})
    assert poolhouse("models").out == SHELF


SHELF = """\
Model             Family  Kind  Layers  Context      Size
guide (built in)  llama   Q8_0      12    2,048  11.0 MiB
[bold]odd         mamba   F16        4    1,024   3.0 GiB
[bold]odd: mamba models run whole on one machine.
"""


def test_models_without_a_chat_template_are_named(poolhouse: Any, answering: Any) -> None:
    item = {**MODELS[0], "has_template": False}
    shelf = {"models": [item, {**item, "writes": False}]}
    answering({("GET", "/models"): shelf, ("GET", "/starter"): {"starter": None}})
    said = "guide is a base model: it completes text and doesn't chat."
    assert poolhouse("models").out.count(said) == 1


def test_an_empty_shelf_says_what_to_do(poolhouse: Any, answering: Any, home: Path) -> None:
    answering({("GET", "/models"): {"models": []}, ("GET", "/starter"): {"starter": None}})
    assert poolhouse("models").out == f"There are no models yet. `poolhouse pull NAME --home {home}` downloads one.\n"


STARTER = {
    "id": "tiny-1b", "name": "Tiny 1B", "file": "tiny.gguf", "quantization": "Q4_K_M",
    "size_bytes": 700 << 20, "needs_bytes": 1 << 30, "lends_bytes": 4 << 30, "tok_s": 11.6,
}  # fmt: skip
BEGIN = (
    "Recommended: Tiny 1B. It needs 1.0 GiB of the 4.0 GiB free for models; forecast: 12 tok/s. `poolhouse pull tiny-1b"
)


def test_a_shelf_with_nothing_of_ones_own_says_which_model_to_begin_with(poolhouse: Any, answering: Any) -> None:
    own = [item for item in MODELS if item["builtin"]]
    answering({("GET", "/models"): {"models": own}, ("GET", "/starter"): {"starter": STARTER}})
    said = " ".join(poolhouse("models").out.split())
    assert said.startswith(BEGIN)


def test_the_catalog_begins_with_the_starter_and_says_what_runs_whole_only(poolhouse: Any, answering: Any) -> None:
    answering({("GET", "/starter"): {"starter": STARTER}})
    said = " ".join(poolhouse("pull").out.split())
    assert said.startswith(BEGIN)
    assert (
        "Cannot be split, so each needs one machine that can hold it: gemma-4-e2b, gemma-4-e4b, deepseek-v4-flash."
        in said
    )
    assert "Checksum not known yet, so the first download records it: gemma-3-27b, " in said


def test_the_catalog_says_where_nothing_of_it_fits(poolhouse: Any, answering: Any) -> None:
    answering({("GET", "/starter"): {"starter": None}})
    said = " ".join(poolhouse("pull").out.split())
    assert said.startswith("None of these fits comfortably in the memory that is free for models now. Close large")
    assert "add a computer. Name Size" in said
    assert poolhouse("pull", "--json").json["starter"] is None


def test_the_catalog_is_listed_without_a_node(poolhouse: Any, home: Path) -> None:
    home.mkdir()
    said = poolhouse("pull")
    assert said.code == 0
    assert said.out.startswith("Name ")


def test_import_gives_the_whole_path_and_says_each_step_once(
    poolhouse: Any, answering: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "odd.gguf").write_bytes(b"GGUF")
    monkeypatch.chdir(tmp_path)
    steps = [progress("hashing", n, 4) for n in range(5)]
    node = answering({("POST", "/models"): Lines([*steps, {"done": {"model": MODELS[0]}}])})
    said = poolhouse("import", "odd.gguf", "--name", "guide")
    assert said.code == 0
    assert said.err == "Computing the file's checksum…\n"
    assert "guide (built in)" in said.out
    assert node.asked[0][2] == {"path": str(tmp_path / "odd.gguf"), "name": "guide"}


@pytest.mark.parametrize(
    ("file", "content", "how"),
    [
        ("my-copy.gguf", b"GGUF", ""),
        ("guide.gguf", b"GGUF", None),
        ("longer.gguf", b"GGUFxx", " This file is 2 bytes longer, in a part that the model does not use."),
        ("shorter.gguf", b"GGU", " This file is 1 byte shorter, in a part that the model does not use."),
    ],
)
def test_import_of_a_model_that_is_there_says_under_which_name_and_what_differs(
    poolhouse: Any, answering: Any, tmp_path: Path, file: str, content: bytes, how: str | None
) -> None:
    (tmp_path / file).write_bytes(content)
    known = MODELS[0] | {"path": str(tmp_path / "guide.gguf"), "file_bytes": 4}
    answering({("POST", "/models"): Lines([{"done": {"model": known}}])})
    text = (
        f"It is a copy of the model guide, which is already on this computer.{how} --name adds it as a second model.\n"
    )
    assert poolhouse("import", str(tmp_path / file)).err == ("" if how is None else text)


def test_import_under_a_name_that_is_taken_says_which_one_it_got(
    poolhouse: Any, answering: Any, tmp_path: Path
) -> None:
    (tmp_path / "odd.gguf").write_bytes(b"GGUF")
    other = MODELS[0] | {"name": "guide-2", "path": str(tmp_path / "odd.gguf")}
    answering({("POST", "/models"): Lines([{"done": {"model": other}}])})
    said = poolhouse("import", str(tmp_path / "odd.gguf"), "--name", "guide").err
    assert said == "guide is another model; this one is called guide-2.\n"


def test_a_part_of_a_model_is_not_told_as_another_file(poolhouse: Any, answering: Any, tmp_path: Path) -> None:
    second, first = (tmp_path / f"m-0000{n}-of-00002.gguf" for n in (2, 1))
    second.write_bytes(b"GGUF")
    answering({("POST", "/models"): Lines([{"done": {"model": MODELS[0] | {"path": str(first)}}}])})
    assert poolhouse("import", str(second)).err == ""


def test_rm_says_what_is_free_again(poolhouse: Any, answering: Any) -> None:
    answering({("DELETE", "/models/guide"): {"removed": "guide", "freed_bytes": 3 << 20}})
    assert poolhouse("rm", "guide", "--yes").out == (
        "guide was removed; its file stays where it is. This freed 3.0 MiB of cut layers.\n"
    )


def test_plan(poolhouse: Any, answering: Any) -> None:
    node = answering({("POST", "/plan"): Lines([{"done": PLAN}])})
    said = poolhouse("plan", "guide", "--context", "2048", "--users", "8", "--split", "4,4,4")
    assert said.out.splitlines()[0] == "guide · split over 2 machines · context 2,048 · 8 at once"
    assert said.out.splitlines()[-1] == "Split as asked."
    assert node.asked[0][2] == {
        "model": "guide", "context": 2048, "users": 8, "split": [4, 4, 4], "kv": "f16",
        "shape": None, "number": "auto", "exact": None, "engine": "", "beside": False,
    }  # fmt: skip
    assert poolhouse("plan", "guide", "--number", "q8").code == 0
    assert node.asked[1][2]["number"] == "q8"
    for option, exact in (("--exact", True), ("--no-exact", False)):
        poolhouse("plan", "guide", option)
        assert node.asked[-1][2]["exact"] is exact


def test_load(poolhouse: Any, answering: Any) -> None:
    steps = [progress("sending", 1, 2, "attic-pc"), progress("sending", 2, 2, "attic-pc")]
    node = answering({("POST", "/load"): Lines([*steps, {"done": {"loaded": LOADED}}])})
    said = poolhouse("load", "guide", "--split", "4,4,4", "--number", "f32", "--kv", "q8_0")
    assert said.code == 0
    assert said.err == "Sending layers to attic-pc…\nSending layers to attic-pc: 50%\n"
    assert node.asked[0][2] == {
        "model": "guide", "context": None, "users": None, "split": [4, 4, 4],
        "kv": "q8_0", "number": "f32", "shape": None, "exact": None, "engine": "", "beside": False,
    }  # fmt: skip


def test_the_beginning_of_a_name_says_first_which_model_was_taken(poolhouse: Any, answering: Any) -> None:
    answering({("POST", "/load"): Lines([{"done": {"loaded": LOADED}}])})
    assert poolhouse("load", "guid").out.startswith("guid refers to guide.\n")
    assert poolhouse("load", "Guide").out.startswith("guide · ")
    assert "means" not in poolhouse("load", "guid", "--json").out


def test_copies_are_told_by_quarters_where_no_bar_can_be_drawn(poolhouse: Any, answering: Any) -> None:
    parts = [("attic", 1), ("kitchen", 30), ("attic", 26), ("attic", 27), ("kitchen", 100)]
    steps = [progress("sending", n << 20, 100 << 20, name) for name, n in parts]
    answering({("POST", "/load"): Lines([*steps, {"done": {"loaded": LOADED}}])})
    assert poolhouse("load", "guide").err.splitlines() == [
        "Sending layers to attic…",
        "Sending layers to kitchen…",
        "Sending layers to kitchen: 25%",
        "Sending layers to attic: 25%",
    ]


@pytest.mark.parametrize(("name", "sentence"), [("guide", "guide is unloaded."), (None, "No model was loaded.")])
def test_unload(poolhouse: Any, answering: Any, name: Any, sentence: str) -> None:
    answering({("POST", "/unload"): {"unloaded": name}})
    assert poolhouse("unload").out == f"{sentence}\n"


def test_ask_streams_text_and_strips_what_would_steer_a_terminal(poolhouse: Any, answering: Any) -> None:
    node = answering({("POST", "/ask"): streamed("Open \x1b[2J", "Pool\u202e and\r", "\n\tAdd.")})
    said = poolhouse("ask", "How?", "--temperature", "0", "--max-tokens", "9", "--seed", "7")
    assert (said.code, said.out, said.err) == (0, "Open [2JPool and\n\tAdd.\n", "")
    assert node.asked[0][2] == {
        "prompt": "How?", "raw": False, "model": None, "max_tokens": 9,
        "sampling": {"temperature": 0.0, "seed": 7},
    }  # fmt: skip


def test_ask_without_guesses_and_what_became_of_them(poolhouse: Any, answering: Any) -> None:
    node = answering({("POST", "/ask"): streamed("Yes.")})
    assert poolhouse("ask", "How?", "--no-guesses").code == 0
    assert node.asked[0][2]["guesses"] is False


def test_ask_json_is_one_object(poolhouse: Any, answering: Any) -> None:
    lines = streamed("Open Pool", " and press Add.")
    lines.lines.insert(0, progress("loading", 1, 2, "attic-pc"))
    answering({("POST", "/ask"): lines})
    said = poolhouse("ask", "How?", "--json")
    assert has_all_of(said.json, ANSWER)
    assert said.err == "Loading layers on attic-pc…\n"


def test_ask_says_first_that_another_model_answers(poolhouse: Any, answering: Any) -> None:
    words = "No other model is loaded, so the Guide answers."
    lines = streamed("Open Pool.")
    lines.lines[:0] = [
        progress("loading", 1, 2, "den-pc"), {"by": {"model": "guide", "text": words}},
    ]  # fmt: skip
    answering({("POST", "/ask"): lines})
    said = poolhouse("ask", "How?")
    assert said.err.splitlines()[-1] == words  # before any of the answer
    assert said.out == "Open Pool.\n"
    assert poolhouse("ask", "How?", "--json").json["said_first"] == words


@pytest.mark.parametrize(
    ("cut_by", "typed", "words"),
    [
        ("max_tokens", ("--max-tokens", "4"), "The answer was cut off at --max-tokens (4)."),
        ("max_tokens", (), "The answer was cut off after 4 tokens. A larger --max-tokens"),
        ("context", ("--max-tokens", "9"), "The answer was cut off because the context is full. Load the model with"),
        (None, (), ""),
    ],
)  # fmt: skip
def test_ask_says_which_limit_cut_an_answer_off(
    poolhouse: Any, answering: Any, cut_by: str | None, typed: tuple[str, ...], words: str
) -> None:
    reason = "length" if cut_by else "stop"
    answer = {**ANSWER, "finish_reason": reason, "cut_by": cut_by}
    answering({("POST", "/ask"): streamed("x", answer=answer)})
    said = poolhouse("ask", "How?", *typed).err
    assert said.startswith(words) if words else "cut off" not in said


def test_ask_with_a_system_sentence_sends_messages(poolhouse: Any, answering: Any) -> None:
    node = answering({("POST", "/ask"): streamed("Yes.")})
    assert poolhouse("ask", "How?", "--system", "Be brief.", "--model", "guide").code == 0
    body = node.asked[0][2]
    assert body["model"] == "guide"
    assert body["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How?"}]


def test_ask_reads_a_long_answer_in_one_line(poolhouse: Any, answering: Any) -> None:
    long = {**ANSWER, "token_ids": list(range(100_000))}
    answering({("POST", "/ask"): streamed("x", answer=long)})
    assert has_all_of(poolhouse("ask", "How?", "--json").json, long)


def test_alone_it_says_what_to_type(poolhouse: Any) -> None:
    said = poolhouse(at_home=False)
    assert said.code == 0
    assert "There is no screen for the window." in said.out
    assert "poolhouse demo" in said.out
    assert max(len(line) for line in said.out.splitlines()) <= 80
    assert poolhouse("--json", at_home=False).json["version"]
    assert poolhouse("--version", at_home=False).out.startswith("Poolhouse ")


def test_help_names_every_command(poolhouse: Any) -> None:
    said = poolhouse("--help", at_home=False)
    assert said.code == 0
    for command in (
        "node", "status", "lend", "pair", "machines", "rename", "roles", "use-again", "remove", "reset", "models",
        "import", "rm", "plan", "load", "unload", "ask", "bench", "demo", "doctor",
        "autostart", "erase",
    ):  # fmt: skip
        assert f" {command} " in said.out


def test_ask_says_what_happened_while_the_answer_was_mended(poolhouse: Any, answering: Any) -> None:
    lines = streamed("One ", "two.")
    result = {"recovery": {"state": "rebuilding", "machine": "attic", "text": "Rebuilding.\x1b[2J"}}
    lost = {"machine": "attic", "recovered_after_s": 1.5}
    done = {"done": ANSWER | {"recoveries": 1, "recovered": [lost]}}
    answering({("POST", "/ask"): Lines([lines.lines[0], result, lines.lines[1], done])})
    said = poolhouse("ask", "How?")
    assert said.out == "One two.\n"
    assert said.err.splitlines()[-1] == "Rebuilding.[2J"


def test_the_speed_of_an_answer_names_the_pause_that_it_includes() -> None:
    lost = [{"machine": "attic", "recovered_after_s": seconds} for seconds in (1.5, 2.5)]
    lines = list[str]()
    out: Any = SimpleNamespace(note=lines.append, note_dim=lines.append)
    for recovered in ([], lost):
        _note_figures(out, convert(ANSWER | {"recovered": recovered}, Answer), None)
    assert "pause" not in lines[0]
    assert "11.8 tok/s, including a pause of 4.00 s" in lines[1]


def test_a_lost_machine_is_one_line_of_an_answer(poolhouse: Any, answering: Any) -> None:
    """Each step of mending it is told by the node; what a person needs of that is one sentence."""
    lines = streamed("One ", "two.")

    def told(state: str, text: str, code: str = "x") -> dict[str, Any]:
        return {"recovery": {"state": state, "machine": "attic", "text": text, "code": code}}

    event = [
        told("reconnecting", "attic stopped responding. Reconnecting…"),
        told("lost", "attic stopped computing its layers."),
        told("rebuilding", "Lost attic. Loading its layers on den (about 3 s)."),
        told("rebuilding", "Lost attic. Loading its layers on den (about 2 s)."),
        told("continued", "Continued after 2 s."),
    ]
    back = told("continued", "attic is back after 2 s. Nothing was lost.", "recovery_reconnected")
    done = {"done": ANSWER | {"recoveries": 1, "recovered": [{"machine": "attic"}]}}
    answering({("POST", "/ask"): Lines([lines.lines[0], *event, event[0], back, lines.lines[1], done])})
    said = poolhouse("ask", "How?")
    assert said.out == "One two.\n", "the answer itself, wherever it goes"
    assert said.err.splitlines() == [event[2]["recovery"]["text"], back["recovery"]["text"]]


def test_help_says_what_stands_behind_an_option_as_a_person_would(poolhouse: Any) -> None:
    shown = poolhouse("ask", "--help", at_home=False).out
    assert "-m, --model MODEL" in shown
    assert "-n, --max-tokens N" in shown
    assert "<" not in poolhouse("pull", "--help", at_home=False).out
    assert "[ADDRESS]" in poolhouse("pair", "--help", at_home=False).out


@pytest.mark.parametrize(
    ("command", "names"),
    [
        (("lend",), ("--pause-for-full-screen", "--despite-full-screen")),
        (("api", "on"), ("--ollama-without-key", "--tokens-a-minute")),
    ],
)
def test_help_names_options_in_full(poolhouse: Any, command: tuple[str, ...], names: tuple[str, ...]) -> None:
    said = poolhouse(*command, "--help", at_home=False)
    assert max(map(len, said.out.splitlines())) <= 80
    for name in names:
        assert name in said.out


def test_a_node_that_is_told_to_end_while_its_parent_lives_ends_well() -> None:
    """The thread that waits for the parent's end held the buffer of standard input, and Python aborted at its end."""
    ends = (
        "from app.cli.commands.node_commands import _stop_when_stdin_ends as watch; "
        "watch(); import time; time.sleep(0.1)"
    )
    with subprocess.Popen([sys.executable, "-c", ends], stdin=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.wait(timeout=30) == 0
        assert run.stderr is not None
        assert run.stderr.read() == b""
