"""Finds and uses widgets of another program by their accessible names; runs in the system's own Python.

One JSON order a line in, one JSON answer a line out: {"do": "press", "name": "Send", "within": 10}.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import pyatspi  # of the system: python3-pyatspi

APP = sys.argv[1]


def showing(node: Any) -> Any:
    """All objects below that are on the screen."""
    for child in node:
        if child is None:
            continue
        try:
            states = child.getState()
            if states.contains(pyatspi.STATE_SHOWING) or child.getRoleName() in (
                "application",
                "filler",
            ):
                yield child
                yield from showing(child)
        except Exception:  # noqa: BLE001, S112  an object that went away meanwhile
            continue


def everything() -> Any:
    for app in pyatspi.Registry.getDesktop(0):
        if app is not None and app.name == APP:
            yield from showing(app)


def text_of(node: Any) -> str:
    try:
        text = node.queryText()
        return str(text.getText(0, -1))
    except Exception:  # noqa: BLE001  not every object has a text
        return ""


def find(name: str, role: str | None, within: float) -> Any:
    late = time.monotonic() + within
    while True:
        for node in everything():
            if node.name == name and (role is None or node.getRoleName() == role):
                return node
        if time.monotonic() > late:
            raise LookupError(f"nothing called {name!r} is on the screen")
        time.sleep(0.1)


def press(order: dict[str, Any]) -> None:
    node = find(order["name"], order.get("role"), order.get("within", 10))
    actions = node.queryAction()
    names = [actions.getName(n).lower() for n in range(actions.nActions)]
    for wanted in ("press", "toggle", "click", "showmenu", "setfocus"):
        if wanted in names:
            actions.doAction(names.index(wanted))
            return
    raise LookupError(f"{order['name']!r} cannot be pressed: {names}")


def write(order: dict[str, Any]) -> None:
    node = find(order["name"], order.get("role"), order.get("within", 10))
    node.queryEditableText().setTextContents(order["text"])


def focus(order: dict[str, Any]) -> None:
    find(order["name"], order.get("role"), order.get("within", 10)).queryComponent().grabFocus()


def read(order: dict[str, Any]) -> str:
    """Wait until a name or text on the screen holds the words; that text comes back."""
    late = time.monotonic() + order.get("within", 10)
    while True:
        for node in everything():
            for text in (node.name, text_of(node)):
                if order["text"] in text:
                    return str(text)
        if time.monotonic() > late:
            raise LookupError(f"{order['text']!r} is nowhere on the screen")
        time.sleep(0.1)


def tree(_order: dict[str, Any]) -> list[str]:
    return [f"{n.getRoleName()}: {n.name!r} {text_of(n)[:60]!r}" for n in everything()]


DEEDS = {"press": press, "write": write, "focus": focus, "read": read, "tree": tree}

for line in sys.stdin:
    try:
        given = json.loads(line)
        answer = {"done": DEEDS[given["do"]](given)}
    except LookupError as error:
        answer = {"error": str(error)}
    except Exception as error:  # noqa: BLE001  the outer wall: told to the test
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
