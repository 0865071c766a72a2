"""Jinja's sandbox as chat templates are run in it. Apart, for it takes a fifth of the time a worker needs to start."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import NoReturn

from jinja2 import Template, TemplateError, Undefined
from jinja2.ext import Extension
from jinja2.nodes import Node
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from backends.contract import Objected, TemplateFailed

__all__ = ["TemplateError", "compiled"]


OF_LISTS = frozenset(("append", "pop"))


class _Sandbox(ImmutableSandboxedEnvironment):
    """A sandbox without `**`, the one operator that can compute for hours in a single call.

    Lists may grow and shrink, as Kimi K2's templates keep the ids of calls in them. They are not shared: a template's
    input was copied for it, and its own lists start anew with each prompt.
    """

    intercepted_binops = frozenset(("**",))

    def is_safe_attribute(self, obj: object, attr: str, value: object) -> bool:
        if isinstance(obj, list) and attr in OF_LISTS:
            return True
        return super().is_safe_attribute(obj, attr, value)

    def call_binop(self, context: object, operator: str, left: object, right: object) -> NoReturn:
        raise TemplateFailed(f"a chat template may not use {operator}", "template_operator", operator=operator)


class _Nothing(Undefined):
    """A variable that nobody gave: added to a text it is no text, as for llama.cpp. Fireworks' template names two."""

    def __add__(self, other: object) -> object:  # type: ignore[override]
        return other

    __radd__ = __add__  # type: ignore[assignment]


class _Generation(Extension):
    """{% generation %}: marks what the model wrote, for those who train. Here it is what stands in it."""

    tags: set[str] = {"generation"}  # noqa: RUF012 (the base class has it so)

    def parse(self, parser: Parser) -> list[Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


@lru_cache(maxsize=2)  # a worker has one vocabulary, and few of them a template of their own for tools
def compiled(template: str) -> Template:
    """Compile a template, which takes longer than everything else for a prompt."""
    return _environment().from_string(template)


def _environment() -> ImmutableSandboxedEnvironment:
    """Return the environment that transformers sets up, for which templates are written."""
    environment = _Sandbox(
        trim_blocks=True, lstrip_blocks=True, undefined=_Nothing, extensions=["jinja2.ext.loopcontrols", _Generation]
    )
    environment.filters["tojson"] = _to_json
    environment.filters["safe"] = _unchanged  # nothing is escaped here: it would make all that is added to it be so
    environment.globals["raise_exception"] = _raise
    return environment


def _unchanged(value: object) -> object:
    return value


def _listed(value: object) -> object:
    """Return as a list the output of a filter that yields items, such as `map`."""
    if isinstance(value, Iterator):
        return list(value)
    if isinstance(value, Undefined):
        return None
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _raise(text: str) -> NoReturn:
    raise Objected(str(text))


def _to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Encode with the spacing and arguments of transformers' filter: models saw no other JSON in training."""
    return json.dumps(
        value, default=_listed, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
