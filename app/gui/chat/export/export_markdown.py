"""A chat as Markdown: a heading for each message, its text as it was written."""

from __future__ import annotations

import re

from app.core.chat import Chat
from app.gui.chat.export import export_words as words

_TICKS = re.compile(r"`+")


def markdown(chat: Chat) -> str:
    """One chat; several stand one after another."""
    parts = [f"# {words.title(chat)}", f"*{words.facts(chat)}*"]
    if chat.system:
        parts += [f"## {words.system_words()}", chat.system]
    for said in words.spoken(chat):
        parts.append(f"## {said.who}" + (f" · {said.when}" if said.when else ""))
        for name, text in said.attachments:
            parts += [f"**{words.attachment_words(name)}**", _fenced(text)]
        if said.thought:
            parts += [f"**{words.thought_words()}**", _quoted(said.thought)]
        parts.append(said.text)
    return "\n\n".join(parts) + "\n"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


def _fenced(text: str) -> str:
    """As code, in a fence longer than any in it."""
    longest = max((len(found) for found in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"
