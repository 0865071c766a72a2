"""JSON of others is read by app/decoding.py: into a type, and with errors of one kind.

The standard library's reader takes NaN, returns whatever stands there, and raises RecursionError for a kilobyte of
brackets: each place that uses it would have to know. Where it is used all the same stands here, with the reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.decoding import decode
from app.inference.worker.worker_errors import decode_lost
from app.network.peer.peer_client import reported_error

PROJECT = Path(__file__).resolve().parent.parent
READERS = {"loads", "load", "JSONDecoder"}
ALLOWED = {
    "app/launcher.py": "files of this app; it runs before a version is chosen, and so without its packages",
    "app/core/reasons.py": "a file that comes with the app",
    "backends/worker/confine.py": "what the app gives its own process",
    "backends/probe.py": "what the app gives its own process",
    "app/core/json_schema/partial_json.py": "what a model wrote, with an end that is missing",
    "app/core/tools/shown_values.py": "what a model wrote, only to show it; the core knows no other reader",
    "app/gui/chat/export/chat_json.py": "one chat of a file after the other, checked value by value",
    "app/inference/pipeline/untrusted_text.py": "what a template is given, read exactly as its worker will read it",
    "backends/templates/template_calls.py": "what a template wrote around JSON of ours",
    "backends/templates/chat_template.py": "what a model called with; text where it is no JSON",
}
# prepared while the module is imported, by one thread; the core may not wait for a lock, and backends know no app
PREPARED = {
    "app/core/log_redaction.py",
    "app/core/household/operations.py",
    "app/network/membership/code_exchange.py",
    "app/network/messages.py",
    "backends/readers/messages.py",
    "backends/worker_orders.py",
}


def calls(folder: str) -> Iterator[tuple[str, str, int]]:
    """File, what it reads JSON with, and where."""
    for file in sorted((PROJECT / folder).rglob("*.py")):
        name = file.relative_to(PROJECT).as_posix()
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            match node:
                case ast.Attribute(value=ast.Name(id="json"), attr=attr) if attr in READERS:
                    yield name, f"json.{attr}", node.lineno
                case ast.ImportFrom(module="json", names=names):
                    yield from ((name, f"json.{alias.name}", node.lineno) for alias in names)
                case ast.Import(names=names):
                    yield from ((name, f"json.{how}", node.lineno) for how in hidden(names))
                case ast.ImportFrom(module="msgspec", names=names):
                    routes = hidden(names, in_msgspec=True)
                    yield from ((name, f"json.{how}", node.lineno) for how in routes)
                case ast.Await(value=ast.Call(func=ast.Attribute(attr="json"))):
                    yield name, "json.json() of an answer", node.lineno
                case ast.Attribute(
                    value=ast.Attribute(value=ast.Name(id="msgspec"), attr="json"), attr="decode" | "Decoder" as attr
                ):
                    yield name, f"msgspec.json.{attr}", node.lineno


def hidden(names: list[ast.alias], *, in_msgspec: bool = False) -> Iterator[str]:
    """Readers of JSON under a name by which they would not be found above."""
    for alias in names:
        if alias.name in ("orjson", "ujson", "simplejson"):
            yield alias.name
        elif alias.name == "json" and in_msgspec:
            yield "msgspec's, by another name"
        elif alias.name.rpartition(".")[2] == "json" and alias.asname is not None:
            yield f"{alias.name} as {alias.asname}"
        elif alias.name == "msgspec" and alias.asname not in (None, "msgspec"):
            yield f"msgspec as {alias.asname}"


def test_only_these_read_json_in_another_way() -> None:
    results = [*calls("app"), *calls("backends")]
    by_hand = [group for group in results if group[1].startswith("json.") and group[0] not in ALLOWED]
    assert not by_hand, "use app.decoding.decode with a type, or say why not in ALLOWED"
    assert set(ALLOWED) <= {name for name, how, _ in results if how.startswith("json.")}
    unprepared = [
        group
        for group in results
        if group[1].startswith("msgspec.")
        and group[0] not in PREPARED | {"app/decoding.py", "backends/worker/service.py"}
    ]
    assert not unprepared, "use app.decoding.decode: two threads may prepare a type at once"


DEEP = [b"[" * 100_000, b'{"a":' * 100_000, b'{"kind":"Refused","code":"x","facts":' + b"[" * 50_000]
ODD = [
    *DEEP, b"", b"null", b"7", b"[]", b"{}", b"\xff\xfe", b'"\\ud800"', b"NaN", b"1e999", b"9" * 10_000,
    b'{"kind":1,"code":2,"facts":3}', b'{"kind":"Refused","code":"x","facts":{"self":1}}',
    b'{"kind":"Refused","code":"disk_full","facts":{"code":1,"needed_bytes":"x"}}',
    b'{"kind":"Refused","code":"link_lost","facts":{"name":1e400}}',
    b'{"kind":"__class__","code":"link_lost","facts":{}}',
]  # fmt: skip


@pytest.mark.parametrize("data", ODD)
def test_what_is_no_json_is_a_value_error_and_nothing_else(data: bytes) -> None:
    for kind in (dict[str, object], list[str], tuple[str, ...]):
        try:
            decode(data, kind)
        except ValueError:
            continue


@pytest.mark.parametrize("data", ODD)
def test_a_peer_can_answer_what_it_wants(data: bytes) -> None:
    assert reported_error(data, "den").reason.code in ("peer_refused", "disk_full", "link_lost")


@pytest.mark.parametrize(
    "data",
    [
        *ODD,
        b'{"code":"worker_grew","facts":{"code":"x","self":1}}',
        b'{"code":"x","facts":{}}',
        b'{"code":"worker_grew","facts":{"limit_bytes":1e308,"used_bytes":"x"}}',
    ],
)
def test_a_lender_can_say_what_it_wants_of_its_loss(data: bytes) -> None:
    assert "den-pc" in str(decode_lost(data, "den-pc").reason.facts.get("machine"))
