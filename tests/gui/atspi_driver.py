"""Finds and uses widgets of another program by their accessible names; runs in the system's own Python.

One JSON order a line in, one JSON answer a line out: {"do": "press", "name": "Send", "within": 10}.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import pyatspi  # of the system: python3-pyatspi
from gi.repository import GLib

APP = sys.argv[1]
popups: list[Any] = []  # menus: Qt does not list them among a program's windows, but tells of each


def note_popup(event: Any) -> None:
    source = event.source
    if event.detail1 and source is not None and source.getRoleName() == "popup menu":
        popups.append(source)


pyatspi.Registry.registerEventListener(note_popup, "object:state-changed:showing")


def showing(node: Any) -> Any:
    """All objects below that are on the screen."""
    for child in node:
        if child is None:
            continue
        try:
            states = child.getState()
            if states.contains(pyatspi.STATE_SHOWING) or child.getRoleName() in ("application", "filler"):
                yield child
                yield from showing(child)
        except Exception:  # noqa: BLE001, S112  an object that went away meanwhile
            continue


def is_showing(node: Any) -> bool:
    try:
        return bool(node.getState().contains(pyatspi.STATE_SHOWING))
    except Exception:  # noqa: BLE001  it is gone
        return False


def everything() -> Any:
    while GLib.MainContext.default().iteration(False):
        pass
    for menu in popups:
        if is_showing(menu):
            yield from showing(menu)
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
    """Press the control as soon as that is possible."""
    late = time.monotonic() + order.get("within", 10)
    while True:
        node = find(order["name"], order.get("role"), late - time.monotonic())
        actions = node.queryAction()
        names = [actions.getName(n).lower() for n in range(actions.nActions)]
        for name in ("press", "toggle", "click", "showmenu", "setfocus"):
            if name in names:
                actions.doAction(names.index(name))
                return
        if time.monotonic() > late:
            raise LookupError(f"{order['name']!r} cannot be pressed: {names}")
        time.sleep(0.1)


def write(order: dict[str, Any]) -> None:
    node = find(order["name"], order.get("role"), order.get("within", 10))
    node.queryEditableText().setTextContents(order["text"])


def set_value(order: dict[str, Any]) -> None:
    """Set the value of a spin box or a slider."""
    node = find(order["name"], order.get("role", "spin button"), order.get("within", 10))
    node.queryValue().currentValue = order["value"]


def focus(order: dict[str, Any]) -> None:
    """Wait until the control has the keyboard focus."""
    late = time.monotonic() + order.get("within", 10)
    while True:
        node = find(order["name"], order.get("role"), late - time.monotonic())
        if node.getState().contains(pyatspi.STATE_FOCUSED):
            return
        if time.monotonic() > late:
            raise LookupError(f"{order['name']!r} does not take the focus")
        node.queryComponent().grabFocus()
        time.sleep(0.1)


def focused(order: dict[str, Any]) -> None:
    """Wait until the control has the keyboard focus, without giving it."""
    late = time.monotonic() + order.get("within", 10)
    while (
        not find(order["name"], order.get("role"), late - time.monotonic()).getState().contains(pyatspi.STATE_FOCUSED)
    ):
        if time.monotonic() > late:
            raise LookupError(f"{order['name']!r} does not get the focus by itself")
        time.sleep(0.1)


def where(order: dict[str, Any]) -> list[int]:
    """The middle of it on the screen, once it stands still."""
    node = find(order["name"], order.get("role"), order.get("within", 10))
    before = None
    while (box := node.queryComponent().getExtents(pyatspi.DESKTOP_COORDS)) != before:
        before = box
        time.sleep(0.05)
    return [box.x + box.width // 2, box.y + box.height // 2]


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


def inside(order: dict[str, Any]) -> str:
    """All names and texts of the last object whose name begins as one of these."""
    late, names = time.monotonic() + order.get("within", 10), tuple(order["names"])
    while True:
        results = [node for node in everything() if node.name.startswith(names)]
        if results:
            words = [word for node in showing(results[-1]) for word in (node.name, text_of(node))]
            return " ".join(filter(None, words))
        if time.monotonic() > late:
            raise LookupError(f"nothing whose name begins with {names} is on the screen")
        time.sleep(0.1)


def tree(_order: dict[str, Any]) -> list[str]:
    return [f"{n.getRoleName()}: {n.name!r} {text_of(n)[:60]!r}" for n in everything()]


DEEDS = {
    "press": press,
    "write": write,
    "set": set_value,
    "focus": focus,
    "focused": focused,
    "read": read,
    "where": where,
    "inside": inside,
    "tree": tree,
}

for line in sys.stdin:
    try:
        command = json.loads(line)
        answer = {"done": DEEDS[command["do"]](command)}
    except LookupError as error:
        answer = {"error": str(error)}
    except Exception as error:  # noqa: BLE001  the outer wall: told to the test
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
