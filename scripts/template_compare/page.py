"""The page that says, template by template, whether ours renders as llama.cpp's own server."""

from __future__ import annotations

from scripts.engine_source import PROJECT
from tests.backends.template_chats import CHATS, DIFFERS, TOLD, ours, record, theirs

PAGE = PROJECT / "docs" / "templates.md"
HEAD = """# Chat templates

A model's file says in a small program, its chat template, how a chat is written for it. llama.cpp's source ships
{n} such templates of well-known models. `make templates` has llama.cpp's own server ({engine},
`/apply-template`) render {chats} chats with each, keeps what it made in `tests/backends/recorded/templates.json.gz`,
and writes this page. The tests compare ours, told as a node tells it, with it text for text. The templates in that
file come with llama.cpp (MIT) and belong to their authors.

**{equal} of {all} are equal.** {by_chat}

## How a chat is told

What a template takes is found out by rendering a few marked words with it, never by a model's name:

- A system message that a template refuses or leaves out (Gemma 2, Mistral 7B 0.1 and 0.2) stands before the first
  words of the user.
- Calls of tools and what came of them are told in words where a template refuses or leaves out the results.
- Turns of one side in a row are joined where a template refuses them.
- Arguments of calls are an object or JSON text, thoughts stand under the name that the template reads, content is a
  text or a list of parts: as the template wants it.
- A begun answer goes on behind what the template itself writes before an answer, with an empty thought where it would
  think, as llama.cpp has it.
- An answer that was cut within its thought goes on behind that thought, which is opened by the template's own sign, or
  by the model's usual one where the template writes none.
- Where a template takes either a thought or words before a call (gpt-oss), both are told as the thought.
- A model without a template is asked as ChatML, which is llama.cpp's rule too, and its answers say so. `--raw` asks it
  without any.
- The date is that of the chat's beginning, in this computer's local time. `enable_thinking` is on unless told
  otherwise.

## Template by template

| template | {titles} |
|---|{rules}|
"""


def page() -> str:
    """The page, from the record and from what we make now."""
    names, whys = list(record()["templates"]), list(dict.fromkeys(DIFFERS.values()))
    rows = {name: {chat: _cell(name, chat, whys) for chat in CHATS} for name in names}
    equal = {chat: sum(row[chat] == "equal" for row in rows.values()) for chat in CHATS}
    head = HEAD.format(
        n=len(names), engine=record()["engine"], chats=len(CHATS), equal=sum(equal.values()),
        all=len(names) * len(CHATS), titles=" | ".join(TOLD.values()), rules="|".join(["---"] * len(CHATS)),
        by_chat=" ".join(f"{TOLD[chat].capitalize()}: {count} of {len(names)}." for chat, count in equal.items()),
    )  # fmt: skip
    table = "".join(f"| {name} | {' | '.join(row.values())} |\n" for name, row in rows.items())
    notes = "".join(f"{number}. {why[0].upper()}{why[1:]}.\n" for number, why in enumerate(whys, 1))
    return f"{head}{table}\nWhy some differ, with llama.cpp's server as *its*:\n\n{notes}"


def _cell(name: str, chat: str, whys: list[str]) -> str:
    if theirs(name, chat) == ours(name, chat):
        return "equal"
    why = DIFFERS.get((name, chat))
    return "differs" if why is None else f"differs ({whys.index(why) + 1})"
