"""Calls of tools as a grammar, in the form that a model's family writes them, so that it cannot but call, or answer in
JSON of a schema where it may. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from app.core.errors import BadInput
from app.core.json_grammar import Rules, check_size, json_grammar, literal
from app.core.json_kinds import referred
from app.core.json_patterns import text_of
from app.core.tool_arguments import wanted
from app.core.tool_marks import (
    ARGS,
    CALL,
    CALL_ARGUMENTS,
    CALL_END,
    CLOSE,
    FUNCTION,
    FUNCTION_END,
    FUNCTIONS,
    KEY,
    KEY_END,
    OPEN,
    PARAMETER,
    PARAMETER_END,
    SECTION,
    SECTION_END,
    TOOL_CALLS,
    VALUE,
    VALUE_END,
    Tools,
)

MAX_CALLS = 8  # of one answer
ARGUMENTS = {"hermes": "arguments", "mistral": "arguments", "llama3": "parameters"}
CHOICES = {"anyOf", "oneOf", "allOf", "enum", "const", "$ref"}
NUMBER = '("0" | [1-9] [0-9]{0,3})'  # of a call in the conversation
BLANK = '"\\n"?'  # some models of a family write it, others do not
ANY_KEY = "[^<>\\n]+"


def calls_grammar(style: str, tools: Tools, many: bool, schema: object = None) -> str:
    """Calls of these tools (name -> schema of its arguments; None: any arguments), and nothing else, but JSON of
    `schema` where there is one. Raises BadInput."""
    rules = Rules()
    call = f"({' | '.join(_calls(style, tools, rules))})"
    calls = _signed(style, call, f"{{0,{MAX_CALLS - 1 if many else 0}}}")
    return rules.grammar(calls if schema is None else f"{calls} | {rules.add(schema)}")


def calls_or_json(style: str, tools: Tools, many: bool, schema: object) -> str:
    """Calls of these tools, or JSON of this schema. Raises BadInput for the schema alone: nobody must call, and a tool
    that no grammar can promise takes any arguments."""
    alone = json_grammar(schema)
    kept = {name: one if _can_be_kept(style, one) else None for name, one in tools.items()}
    for those in (kept, dict.fromkeys(tools)):  # all together may be too long
        with suppress(BadInput):
            return calls_grammar(style, those, many, schema)
    return alone


def _can_be_kept(style: str, schema: object) -> bool:
    try:
        calls_grammar(style, {"": schema}, many=False)
    except BadInput:
        return False
    return True


def _signed(style: str, call: str, more: str) -> str:
    """One call and as many more, with the signs around them."""
    match style:
        case "hermes" | "qwen_coder":
            one = f"{literal(OPEN + chr(10))} {call} {literal(chr(10) + CLOSE)}"
            return f'{one} ("\\n" {one}){more}'
        case "glm":
            one = f"{literal(OPEN)} {call} {literal(CLOSE)}"
            return f"{one} ({BLANK} {one}){more}"
        case "kimi":
            one = f"{literal(CALL)} {call} {literal(CALL_END)}"
            return f"{literal(SECTION)} {one} ({one}){more} {literal(SECTION_END)}"
        case "mistral":
            return f'{literal(TOOL_CALLS + "[")} {call} (", " {call}){more} "]"'
        case "ministral":
            one = f"{literal(TOOL_CALLS)} {call}"
            return f"{one} ({one}){more}"
        case _:
            return f'{call} ("; " {call}){more}'


def _calls(style: str, tools: Tools, rules: Rules) -> Iterator[str]:
    """One call of each tool."""
    for name, schema in tools.items():
        match style:
            case "qwen_coder":
                head, parts = literal(f"{FUNCTION}{name}>\n"), _tagged(rules, schema, _parameter)
                yield " ".join([head, *parts, literal(FUNCTION_END)])
            case "glm":
                yield " ".join([literal(name), BLANK, *_tagged(rules, schema, _pair)])
            case "kimi":
                head = f"{literal(f'{FUNCTIONS}{name}:')} {NUMBER} {literal(CALL_ARGUMENTS)}"
                yield f"{head} {rules.add(schema or {'type': 'object'})}"
            case "ministral":
                yield f"{literal(name + ARGS)} {rules.add(schema or {'type': 'object'})}"
            case _:
                told = json.dumps(name, ensure_ascii=False)
                head = literal(f'{{"name": {told}, "{ARGUMENTS[style]}": ')
                yield f'{head} {rules.add(schema or {"type": "object"})} "}}"'


def _parameter(key: str, value: str) -> str:
    head_end, end = literal(">\n"), literal(f"\n{PARAMETER_END}\n")
    return f"{literal(PARAMETER)} {key} {head_end} {value} {end}"


def _pair(key: str, value: str) -> str:
    head = f"{literal(KEY)} {key} {literal(KEY_END)}"
    return f"{head} {BLANK} {literal(VALUE)} {value} {literal(VALUE_END)} {BLANK}"


def _tagged(rules: Rules, schema: object, written: Callable[[str, str], str]) -> list[str]:
    """Arguments with tags around each, in the order of the schema; any of them where that is None. Raises BadInput."""
    end = PARAMETER_END if written is _parameter else VALUE_END
    if schema is None:
        return [f"({written(ANY_KEY, rules.named(_text(None, end)))})*"]
    check_size(schema)
    properties, required = _properties(schema)
    found = []
    for key, one in properties.items():
        if set(key) & set("<>\n"):
            raise _no(key, "this model cannot write a property of this name")
        part = rules.named(written(literal(key), _value(rules, one, schema, end)))
        found.append(part if key in required else f"{part}?")
    return found


def _properties(schema: object) -> tuple[Mapping[str, Any], Sequence[str]]:
    of = (
        referred(schema["$ref"], schema)
        if isinstance(schema, Mapping) and "$ref" in schema
        else schema
    )
    if not isinstance(of, Mapping) or of.get("type", "object") != "object" or set(of) & CHOICES:
        raise _no(
            "", "this model calls tools with named arguments, and it is no object with properties"
        )
    properties, required = of.get("properties", {}), of.get("required", [])
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        raise _no("", "its properties are no list of schemas")
    if not all(isinstance(name, str) for name in required):
        raise _no("", "required holds what is no name")
    return {**properties, **{name: True for name in required if name not in properties}}, required


def _value(rules: Rules, schema: object, root: object, end: str) -> str:
    """What may stand between the tags: texts as they are, all else as JSON."""
    what = wanted(schema, root)
    as_json = rules.add(
        schema, root
    )  # also where only texts may stand: it says what cannot be promised
    if what.free:
        return rules.named(_text(schema, end))
    texts = [literal(text) for text in sorted(what.texts) if end not in text]
    return rules.named(" | ".join([*texts, *([as_json] if what.kinds != {"string"} else [])]))


def _text(schema: object, end: str) -> str:
    """Any text in which `end` does not stand; of a format that is kept to, one of that."""
    bounds = schema if isinstance(schema, Mapping) else {}
    least, most = bounds.get("minLength") or 0, bounds.get("maxLength")
    if bounds.get("type") == "string" and (text := text_of(bounds, least, most)):
        return text
    if "minLength" in bounds or "maxLength" in bounds:
        return f"[^<]{{{least},{'' if most is None else most}}}"
    first, later = end[0], end[1:]  # the first stands in it only once
    plain, part = f"[^{first}]*", ""
    for sign in reversed(later):
        other = f"[^{sign}{first}] {plain}"
        part = f"({other} | {literal(sign)} {part})?" if part else f"({other})?"
    return f"{plain} ({literal(first)} {part})*"


def _no(at: str, why: str) -> BadInput:
    return BadInput("schema_refused", where=at[:200] or "the schema", why=why)
