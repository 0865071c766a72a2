"""The facts about a model's use in its file: its chat template's abilities, its languages and its maker.

The template is only searched, never run, so that a hostile one does no harm. A worker that loads the model runs it and
knows more (backends/templates).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from app.catalog.gguf import tensor_types
from app.catalog.gguf.gguf_file import Header, printable

TEMPLATE = "tokenizer.chat_template"
MOST_TEMPLATE = 1 << 20  # characters
MOST_LANGUAGES = 40
_OPENS = re.compile(r"\{[{%]")
_CLOSES = {"{{": "}}", "{%": "%}"}
_TOOLS = re.compile(r"\b(tools|tool_calls|functions)\b")
_SWITCH = re.compile(r"\b(enable_thinking|thinking|thinking_mode|thinking_budget|reasoning_effort|reasoning_content)\b")
_THOUGHT = re.compile(
    r"</?think>|<thinking>|<thought>|<reasoning>|<seed:think>|<mm:think>|\[THINK\]|<\|START_THINKING\|>|<\|channel\|?>"
)
_LANGUAGE = re.compile(r"[a-z]{2,3}")


@dataclass(frozen=True, slots=True)
class ChatFacts:
    """The facts that a model file states about the model's use. Facts that it does not state are empty."""

    has_template: bool = False
    has_tools: bool = False  # its template describes tools to the model
    thinks: bool = False  # its template knows thoughts
    languages: tuple[str, ...] = ()  # codes such as "de"
    maker: str = ""


def chat_facts(header: Header) -> ChatFacts:
    """Read these facts from the header of a model file."""
    has_tools, thinks = abilities(template_of(header))
    return ChatFacts(
        has_template=TEMPLATE in header.entries,
        has_tools=has_tools,
        thinks=thinks,
        languages=_languages(header),
        maker=header.text("general.organization") or header.text("general.author"),
    )


def abilities(template: str) -> tuple[bool, bool]:
    """Return whether a chat template handles tools and whether it handles thoughts."""
    code = " ".join(_code(template))
    return bool(_TOOLS.search(code)), bool(_SWITCH.search(code) or _THOUGHT.search(template))


def _code(template: str) -> Iterator[str]:
    """Yield the parts of a template that contain code. The rest is copied to the prompt."""
    end = 0
    while (begin := _OPENS.search(template, end)) is not None:
        end = template.find(_CLOSES[begin[0]], begin.end())
        if end < 0:
            return
        yield template[begin.end() : end]


def template_of(header: Header) -> str:
    """Return the chat template, or "" if there is none."""
    value = header.entries.get(TEMPLATE)
    if value is None or value.is_array or value.kind != tensor_types.STRING:
        return ""
    return str(header.items(TEMPLATE)[0])[:MOST_TEMPLATE]


def _languages(header: Header) -> tuple[str, ...]:
    value = header.entries.get("general.languages")
    if value is None or not value.is_array or value.kind != tensor_types.STRING:
        return ()
    known = (printable(str(code)).casefold() for code in header.items("general.languages")[:MOST_LANGUAGES])
    return tuple(dict.fromkeys(code for code in known if _LANGUAGE.fullmatch(code)))
