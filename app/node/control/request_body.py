"""Bodies of the loopback API: decoding requests with an error that names the wrong field, and encoding answers."""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec
from aiohttp import web

from app.api.requests import Request
from app.core import wire_json
from app.core.errors import BadInput
from app.decoding import decode
from app.network.traffic_limits import whole_body
from app.node.control.guard import MAX_BODY_BYTES

R = TypeVar("R", bound=Request)

_WHERE = re.compile(r" - at (?:`key` in )?`\$\.?([^`]*)`$")
_BOUND = re.compile(r"Expected `(\w+)`( of length)? (<=|>=|<|>) (-?[\d.]+)")
_TYPES = re.compile(r"Expected `([^`]+)`, got `([^`]+)`")
_MISSING = re.compile(r"Object missing required field `([^`]*)`")
_UNKNOWN = re.compile(r"Object contains unknown field `([^`]*)`")
_CHOICE = re.compile(r"Invalid enum value (.+?)(?: - at |$)")
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "nothing",
}
_SIGNS = {"<=": "at most", ">=": "at least", "<": "less than", ">": "more than"}


async def body(request: web.Request, kind: type[R]) -> R:
    """Return the body of `request` as `kind`. Raises BadInput that names the wrong field, TooLong or TooSlow."""
    raw = await whole_body(request.content, request.content_length, MAX_BODY_BYTES)
    try:
        return decode(wire_json.replace_lone_surrogates(raw) or b"{}", kind)
    except ValueError as error:
        raise BadInput("bad_request", why=explain(str(error))) from None


def answer(value: msgspec.Struct) -> web.Response:
    """Return a value of app/api as a JSON answer."""
    return web.json_response(msgspec.to_builtins(value))


def wrong_field(words: str) -> str:
    """Return the field that a decoder's message names, even if it is missing or unknown, or an empty string."""
    match = _MISSING.search(words) or _UNKNOWN.search(words)
    return _below(_where(words), match.group(1)) if match else _where(words)


def _where(words: str) -> str:
    match = _WHERE.search(words)
    return match.group(1) if match else ""


def explain(words: str) -> str:
    """Return a decoder's message in plain words. An unknown message is returned unchanged."""
    field = wrong_field(words)
    named = field or "the body"
    if match := _BOUND.search(words):
        return f"{named} must {_bound(*match.groups())}"
    if match := _TYPES.search(words):
        return f"{named} must be {_kinds(match.group(1))}, not {_kinds(match.group(2))}"
    if _MISSING.search(words):
        return f"{field} is missing"
    if _UNKNOWN.search(words):
        return f"nothing here is called {field}"
    if match := _CHOICE.search(words):
        return f"{named} cannot be {match.group(1)}"
    if " matching regex " in words:
        return f"{named} has characters that it must not have, or begins with one, or is too long"
    if words.startswith("Number out of range"):
        return f"{named} is too large a number"
    if words.startswith(("JSON is malformed", "Input data was truncated", "'utf-8' codec")):
        where = re.search(r"\(byte \d+\)", words)
        return f"it is not whole and valid JSON{f' {where.group()}' if where else ''}"
    return words


def _bound(kind: str, length: str | None, sign: str, limit: str) -> str:
    if length is None:
        return f"be {_SIGNS[sign]} {limit.removesuffix('.0')}"
    if sign == ">=" and limit == "1":
        return "not be empty"
    return f"be {_SIGNS[sign]} {limit} {'characters' if kind == 'str' else 'entries'} long"


def _kinds(names: str) -> str:
    return " or ".join(_KINDS.get(name, name) for name in names.split(" | "))


def _below(field: str, name: str) -> str:
    return f"{field}.{name}" if field else name
