"""The page that shows, for each template, whether Poolhouse renders chats like llama.cpp's own server."""

from __future__ import annotations

from scripts.engine_source import PROJECT
from tests.backends.template_chats import CHATS, DIFFERS, TOLD, ours, record, theirs

PAGE = PROJECT / "docs" / "templates.md"
HEAD = """# Chat templates

A model's file contains a small program, its chat template, that writes a chat in the model's own format. llama.cpp's
source ships {n} templates of well-known models. `make templates` has llama.cpp's own server ({engine},
`/apply-template`) render {chats} chats with each of them, keeps the results in
`tests/backends/recorded/templates.json.gz`, and writes this page. The tests compare our rendering with them, text for
text. The templates in that file come with llama.cpp (MIT) and belong to their authors.

**{equal} of {all} are equal.** {by_chat}

## How a chat is adapted to a template

Poolhouse renders a few marked words to find out what a template accepts; it never goes by a model's name.

- If a template refuses or drops system messages (Gemma 2, Mistral 7B 0.1 and 0.2), the message goes before the first
  words of the user.
- If a template refuses or drops the results of tools, calls and results are written as text.
- If a template refuses two turns of the same side in a row, they are joined.
- Arguments of calls are an object or JSON text, thoughts have the name that the template reads, and content is a text
  or a list of parts, whichever the template expects.
- An answer to be continued follows what the template writes before an answer, with an empty thought if the model
  would think, as in llama.cpp.
- An answer that was cut in the middle of its thought continues after that thought. The thought is opened by the
  template's own marker, or by the model's usual one if the template writes none.
- If a template accepts either a thought or text before a call (gpt-oss), both are passed as the thought.
- A model without a template is asked in ChatML, as llama.cpp does, and its answers say so. `--raw` uses no template.
- The date is that of the chat's beginning, in this computer's local time. `enable_thinking` is on unless the request
  says otherwise.

## Template by template

| template | {titles} |
|---|{rules}|
"""


def page() -> str:
    """Return the page, which compares the record with our current rendering."""
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
