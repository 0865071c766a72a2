"""Grammars that force a model to write tool calls in its own format, optionally with JSON as an alternative."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from typing import Any

from app.core.errors import BadInput
from app.core.json_schema.json_grammar import Rules, check_size, json_grammar, literal, string_expression
from app.core.json_schema.schema_types import resolve_reference
from app.core.tools.argument_values import GEMMA_QUOTE, accepted_values
from app.core.tools.call_cursor import Tools
from backends.contract import (
    CALL_ID_PLACEHOLDER,
    CALL_NUMBER_PLACEHOLDER,
    TOOL_NAME_PLACEHOLDER,
    CallFormat,
    CallSyntax,
)

MAX_CALLS = 8  # per answer
CHOICES = {"anyOf", "oneOf", "allOf", "enum", "const", "$ref"}
SLOTS = {
    CALL_NUMBER_PLACEHOLDER: '("0" | [1-9] [0-9]{0,3})',  # the number of a call in the conversation
    CALL_ID_PLACEHOLDER: "[a-zA-Z0-9_-]{1,64}",
}
SLOT = re.compile(f"([{''.join(SLOTS)}])")
OPTIONAL_BLANK = re.compile(
    r"(?<=[>}])(?<!\|>)\n?(?=[<{])"
)  # only some models of a family write this newline; between control tokens, all of them follow the template
ANY_KEY = '[^<>\\n"]+'
MAX_DEPTH = 8  # maximum nesting of elements


def calls_grammar(form: CallFormat, tools: Tools, many: bool, schema: object = None) -> str:
    """Return the grammar for calls of these tools or, if `schema` is given, for either calls or JSON of that schema.

    tools: maps each name to the schema of its arguments, or to None for any arguments. Raises BadInput.
    """
    rules = Rules()
    call = _any_call(form, tools, rules)
    first = call
    if form.prompt_marker:  # the prompt already contains the first marker
        first = _any_call(replace(form, lead=form.lead.replace(form.prompt_marker, "", 1)), tools, rules)
    is_alone = form.past.is_single and not form.between
    more = f"{{0,{MAX_CALLS - 1 if many and not is_alone else 0}}}"
    is_tag = form.between in ("", "\n") and form.trail.endswith(">") and form.lead.lstrip().startswith("<")
    between = '"\\n"?' if is_tag and not form.lead.startswith("\n") else _text_of(form.between)
    calls = _joined(_text_of(form.section), first, f"({_joined(between, call)}){more}", _text_of(form.section_end))
    if schema is None:
        return rules.grammar(calls)
    answer = _joined(_text_of(form.answer_marker), rules.add(schema))
    return rules.grammar(f"{calls} | {answer}")


def _any_call(form: CallFormat, tools: Tools, rules: Rules) -> str:
    """Return the expression for one call of any of these tools."""
    return f"({' | '.join(_call(form, name, schema, rules) for name, schema in tools.items())})"


def calls_or_json(form: CallFormat, tools: Tools, many: bool, schema: object) -> str:
    """Return the grammar for either calls of these tools or JSON of this schema.

    If no grammar can guarantee a tool's schema, the tool accepts any arguments, because the model need not call it.
    Raises BadInput only for `schema`.
    """
    alone = json_grammar(schema)
    kept = {name: tool_schema if _can_be_kept(form, tool_schema) else None for name, tool_schema in tools.items()}
    for candidate_tools in (kept, dict.fromkeys(tools)):  # the grammar of all tools may be too long
        with suppress(BadInput):
            return calls_grammar(form, candidate_tools, many, schema)
    return alone


def _can_be_kept(form: CallFormat, schema: object) -> bool:
    try:
        calls_grammar(form, {"": schema}, many=False)
    except BadInput:
        return False
    return True


def _call(form: CallFormat, name: str, schema: object, rules: Rules) -> str:
    """Return the expression for one call of a tool, including its markers."""
    written_name = json.dumps(name, ensure_ascii=False)[1:-1] if form.payload is CallSyntax.OBJECTS else name
    match form.payload:
        case CallSyntax.OBJECTS | CallSyntax.NAMED:
            inner = rules.add(schema or {"type": "object"})
            behind = _joined(_text_of(form.rest + form.trail))
            return _joined(_text_of(f"{form.lead}{form.head}{written_name}{form.named}"), inner, behind)
        case CallSyntax.HARMONY:
            head = f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>"
            return _joined(literal(head), rules.add(schema or {"type": "object"}))
        case CallSyntax.TAGGED:
            parts = _tagged(rules, schema, form)
            return _joined(
                _text_of(f"{form.lead.replace(TOOL_NAME_PLACEHOLDER, name)}{name}{form.named}"),
                *parts,
                _text_of(form.trail),
            )
        case CallSyntax.NESTED:
            parts = _elements(rules, schema, form)
            return _joined(
                _text_of(f"{form.lead.replace(TOOL_NAME_PLACEHOLDER, name)}{name}{form.named}"),
                *parts,
                _text_of(form.trail),
            )
        case CallSyntax.PYTHON:
            return _joined(literal(f"{name}("), _listed(rules, schema, "=", python=True), literal(")"))
        case CallSyntax.GEMMA:
            pairs = _listed(rules, schema, ":", python=False)
            return _joined(_text_of(f"{form.lead}{name}{{"), pairs, _text_of(f"}}{form.trail}"))


def _text_of(text: str) -> str:
    """Return the expression for markers, with rules for numbers and ids, and with optional whitespace between tags."""
    parts = []
    for part in SLOT.split(text):
        if part in SLOTS:
            parts.append(SLOTS[part])
        elif part:
            pieces = [literal(piece) for piece in OPTIONAL_BLANK.split(part)]
            parts.append(' "\\n"? '.join(pieces))
    return " ".join(parts)


def _joined(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _listed(rules: Rules, schema: object, marker: str, *, python: bool) -> str:
    """Return the expression for pairs of key, `marker` and value, separated by commas, in the order of the schema."""
    if schema is None:
        value = rules.add({}) if python else f"({rules.add({})} | {_quoted(rules)})"
        pair = f'[^:=,{{}}()<>" ]+ {literal(marker)} {value}'
        return f"({pair} ({literal(', ' if python else ',')} {pair})*)?"
    properties, required = _properties(schema)
    parts = [
        (f"{literal(key + marker)} {_loose(rules, property_schema, schema, python=python)}", key in required)
        for key, property_schema in properties.items()
    ]
    return _parted(rules, parts, literal(", " if python else ","))


def _parted(rules: Rules, parts: Sequence[tuple[str, bool]], comma: str) -> str:
    """Return the expression for these parts in order, separated by commas.

    Only optional parts may be omitted.
    """
    behind = ""  # the expression after a part that has been written
    first = ""  # the expression while no part has been written
    for text, is_required in reversed(parts):
        rule = rules.named(text)
        later = f"{comma} {rule}" if is_required else f"({comma} {rule})?"
        begun = _joined(rule, behind)
        first = begun if is_required else (f"({begun} | {first})" if first else f"({begun})?")
        first = rules.named(first)
        behind = rules.named(_joined(later, behind))
    return first


def _loose(rules: Rules, schema: object, root: object, *, python: bool) -> str:
    """Return the expression for a value in JSON, but with Gemma's own quotes around strings."""
    as_json = rules.add(schema, root)
    accepted = accepted_values(schema, root)
    if python or not (accepted.free or accepted.texts):
        return as_json
    texts = [literal(GEMMA_QUOTE + text + GEMMA_QUOTE) for text in sorted(accepted.texts) if GEMMA_QUOTE not in text]
    texts += [_quoted(rules, schema)] if accepted.free else []
    return rules.named(" | ".join([*texts, *([as_json] if accepted.kinds != {"string"} else [])]))


def _quoted(rules: Rules, schema: object = None) -> str:
    return f"{literal(GEMMA_QUOTE)} {rules.named(_text(rules, schema, GEMMA_QUOTE))} {literal(GEMMA_QUOTE)}"


def _elements(rules: Rules, schema: object, form: CallFormat) -> list[str]:
    """Return the expressions for XML elements, one for each property."""
    if schema is None:
        return []
    rules.add(schema)  # raises the error that states which constraint cannot be guaranteed
    return list(_properties_as_elements(rules, schema, schema, form, 0))


def _properties_as_elements(rules: Rules, schema: object, root: object, form: CallFormat, depth: int) -> Iterator[str]:
    properties, required = _properties(schema, root)
    for key, property_schema in properties.items():
        part = rules.named(_element(rules, key, property_schema, root, form, depth))
        yield part if key in required else f"{part}?"


def _element(rules: Rules, key: str, schema: object, root: object, form: CallFormat, depth: int) -> str:
    """Return the expression for an element with its tags.

    Lists and objects are constrained if a schema describes them.
    """
    begin, end = literal(f"{form.key}{key}>"), literal(f"{form.value_end}{key}>")
    of = schema
    if isinstance(schema, Mapping) and "$ref" in schema:
        of = resolve_reference(schema["$ref"], root)
    kinds = accepted_values(schema, root).kinds
    inner_schema = of if isinstance(of, Mapping) and depth < MAX_DEPTH else {}
    marker = form.key.removesuffix("<")  # the marker that precedes each tag
    if kinds and not kinds & {"array", "object"}:
        return _joined(begin, _value(rules, schema, root, marker), end)
    if kinds == {"array"} and isinstance(inner_schema.get("items"), Mapping):
        item = rules.named(_element(rules, "item", inner_schema["items"], root, form, depth + 1))
        return _joined(begin, f"({item})*", end)
    if kinds == {"object"} and inner_schema.get("properties"):
        parts = _properties_as_elements(rules, inner_schema, root, form, depth + 1)
        return _joined(begin, *parts, end)
    return _joined(begin, rules.without(f"{form.value_end}{key}>"), end)


def _written(form: CallFormat, key: str, value: str, kinds: Set[str] | None) -> str:
    """Return the expression for an argument, including its markers.

    kinds: the types of its value, if the marker after the key depends on them.
    """
    separators = dict.fromkeys(text for kind, text in form.keyed if kinds is None or kind in kinds)
    keyed = " | ".join(_text_of(text) for text in separators) or _text_of(form.keyed[0][1])
    return _joined(_text_of(form.key), key, f"({keyed})", value, _text_of(form.value_end))


def _tagged(rules: Rules, schema: object, form: CallFormat) -> list[str]:
    """Return the expressions for tagged arguments in the order of the schema.

    Without a schema, any arguments are allowed. Raises BadInput.
    """
    end = form.value_end.strip()
    if schema is None:
        return [f"({_written(form, ANY_KEY, rules.named(_text(rules, None, end)), None)})*"]
    check_size(schema)
    properties, required = _properties(schema)
    markers = {text for _, text in form.keyed}
    elements = []
    for key, property_schema in properties.items():
        if set(key) & set('<>"\n'):
            raise _no(key, "this model cannot write a property of this name")
        if len(markers) < 2:
            parts = [_written(form, literal(key), _value(rules, property_schema, schema, end), None)]
        else:
            parts = list(_by_kind(rules, property_schema, schema, key, form))
        part = rules.named(" | ".join(parts))
        elements.append(part if key in required else f"{part}?")
    return elements


def _by_kind(rules: Rules, schema: object, root: object, key: str, form: CallFormat) -> Iterator[str]:
    """Yield the expressions for a string and for other values, if the marker after the key distinguishes them."""
    accepted, end = accepted_values(schema, root), form.value_end.strip()
    as_json = rules.add(schema, root)
    if accepted.free or accepted.texts:
        texts = [literal(text) for text in sorted(accepted.texts) if end not in text]
        value = rules.named(_text(rules, schema, end) if accepted.free else " | ".join(texts))
        yield _written(form, literal(key), value, {"string"})
    if other_kinds := accepted.kinds - {"string"}:
        yield _written(form, literal(key), as_json, other_kinds)


def _properties(schema: object, root: object = None) -> tuple[Mapping[str, Any], Sequence[str]]:
    of = (
        resolve_reference(schema["$ref"], schema if root is None else root)
        if isinstance(schema, Mapping) and "$ref" in schema
        else schema
    )
    if not isinstance(of, Mapping) or of.get("type", "object") != "object" or set(of) & CHOICES:
        raise _no("", "this model calls tools with named arguments, and it is no object with properties")
    properties, required = of.get("properties", {}), of.get("required", [])
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        raise _no("", "its properties are no list of schemas")
    if not all(isinstance(name, str) for name in required):
        raise _no("", "required holds what is no name")
    return {**properties, **{name: True for name in required if name not in properties}}, required


def _value(rules: Rules, schema: object, root: object, end: str) -> str:
    """Return the expression for the text between the tags: strings verbatim, and other values as JSON."""
    accepted = accepted_values(schema, root)
    # called even if only certain strings are allowed, because it reports constraints that cannot be guaranteed
    as_json = rules.add(schema, root)
    if accepted.free:
        return rules.named(_text(rules, schema, end))
    texts = [literal(text) for text in sorted(accepted.texts) if end not in text]
    return rules.named(" | ".join([*texts, *([as_json] if accepted.kinds != {"string"} else [])]))


def _text(rules: Rules, schema: object, end: str) -> str:
    """Return the expression for text that does not contain `end`, or for text of a known format."""
    bounds = schema if isinstance(schema, Mapping) else {}
    least, most = bounds.get("minLength") or 0, bounds.get("maxLength")
    if bounds.get("type") == "string" and (text := string_expression(bounds, least, most)):
        return text
    if "minLength" in bounds or "maxLength" in bounds:
        return f"[^<]{{{least},{'' if most is None else most}}}"
    return rules.without(end)


def _no(at: str, why: str) -> BadInput:
    return BadInput("schema_refused", where=at[:200] or "the schema", why=why)
