"""The Jinja sandbox in which chat templates run.

It is a separate module because importing it takes a fifth of a worker's startup time, and only some workers render
templates.
"""

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

from backends.contract import ChatRejected, TemplateFailed

__all__ = ["TemplateError", "compiled"]


OF_LISTS = frozenset(("append", "pop"))


class _Sandbox(ImmutableSandboxedEnvironment):
    """A sandbox without `**`, the only operator that can compute for hours in a single call.

    Templates may modify lists, because Kimi K2's templates collect the ids of calls in them. This is safe because a
    template receives a copy of its input and creates its own lists for each prompt.
    """

    intercepted_binops = frozenset(("**",))

    def is_safe_attribute(self, obj: object, attr: str, value: object) -> bool:
        if isinstance(obj, list) and attr in OF_LISTS:
            return True
        return super().is_safe_attribute(obj, attr, value)

    def call_binop(self, context: object, operator: str, left: object, right: object) -> NoReturn:
        raise TemplateFailed(f"a chat template may not use {operator}", "template_operator", operator=operator)


class _Nothing(Undefined):
    """An undefined variable that adds nothing when concatenated with text, as in llama.cpp.

    Fireworks' template uses two undefined variables.
    """

    def __add__(self, other: object) -> object:  # type: ignore[override]
        return other

    __radd__ = __add__  # type: ignore[assignment]


class _Generation(Extension):
    """The tag {% generation %}, which marks text written by the model for training.

    This version only renders the tag's content.
    """

    tags: set[str] = {"generation"}  # noqa: RUF012 (the base class has it so)

    def parse(self, parser: Parser) -> list[Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


@lru_cache(maxsize=2)  # a worker has one vocabulary, and few models have a separate template for tools
def compiled(template: str) -> Template:
    """Compile a template and cache the result.

    Compiling takes longer than everything else in rendering a prompt.
    """
    return _environment().from_string(template)


def _environment() -> ImmutableSandboxedEnvironment:
    """Return an environment like the one in transformers, for which most templates are written."""
    environment = _Sandbox(
        trim_blocks=True, lstrip_blocks=True, undefined=_Nothing, extensions=["jinja2.ext.loopcontrols", _Generation]
    )
    environment.filters["tojson"] = _to_json
    # nothing is escaped here, while a Markup string would escape everything added to it
    environment.filters["safe"] = _unchanged
    environment.globals["raise_exception"] = _raise
    return environment


def _unchanged(value: object) -> object:
    return value


def _listed(value: object) -> object:
    """Return the value, converted to a list if it is an iterator from a filter such as `map`."""
    if isinstance(value, Iterator):
        return list(value)
    if isinstance(value, Undefined):
        return None
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _raise(text: str) -> NoReturn:
    raise ChatRejected(str(text))


def _to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Encode JSON with the arguments and the spacing of the filter in transformers.

    Models were trained on that spacing.
    """
    return json.dumps(
        value, default=_listed, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
