"""The page that shows, for each template, whether Poolhouse parses tool calls like llama.cpp's server."""

from __future__ import annotations

from scripts.engine_source import PROJECT
from tests.backends.call_samples import CALLS, DIFFERS, REFUSED, compared, expected, of_template, ours, record, theirs

PAGE = PROJECT / "docs" / "tools.md"
EQUAL, OURS, DIFFERENT = "equal", "read only here, see below", "differs, see below"
HEADS = {
    "one": "a call",
    "other": "with a list and two lines",
    "two": "two calls",
    "text": "text before a call",
    "none": "text alone",
}
INTRODUCTION = """# Calls of tools, template by template

Poolhouse learns how a model writes calls from what its chat template makes of calls with known names and values
(`backends/templates/template_calls.py`); a name that merely occurs in a template does not count. The table has each
template in llama.cpp's source ({engine}). Answers as the template itself writes them are read by llama.cpp's parser
and by ours, in one piece and character by character. Names, arguments and text are compared. `make call-compare`
records anew.

| format | what is between the markers |
|---|---|
| objects | `{{"name": …, "arguments": {{…}}}}`, alone or in a list, under the keys that the template uses |
| named | the tool's name between markers, then its arguments as JSON |
| tagged | the name, then each argument between markers of its own |
| nested | like tagged, also inside an argument |
| python | `[name(key='value')]` |
| gemma | `call:name{{key:<\\|"\\|>text<\\|"\\|>}}` |
| harmony | a message to `functions.name` |

A grammar keeps a forced call (`tool_choice`) to this format, with arguments that follow the schema. In a test, a
model that knows nothing writes a call within each of these grammars, and the call is read. Arguments are streamed
while they are written, except in the formats python, gemma and nested, where they are sent when they are complete. A
model whose template shows no calls refuses tools. SmolLM3's own template takes tools as `xml_tools`; the edition that
llama.cpp ships shows a model none.

"""


def page() -> str:
    """Return the page as Markdown."""
    kept = {(name, key): _said(name, key) for name, key, _ in compared()}
    rows = []
    for name in record()["templates"]:
        template = of_template(name)
        cells = [kept.get((name, key), "–") if template else "–" for key in CALLS]
        rows.append(f"| {name} | {template.payload if template else 'no calls: refused'} | {' | '.join(cells)} |")
    read = [said for (name, _), said in kept.items() if of_template(name)]
    head = f"| template | format | {' | '.join(HEADS[key] for key in CALLS)} |\n|---|---|{'---|' * len(CALLS)}"
    whys = "\n".join(f"- {name}, {HEADS[key]}: {why}." for (name, key), why in sorted({**DIFFERS, **REFUSED}.items()))
    count = (
        f"**{read.count(EQUAL)} of {len(read)} answers are read alike**; {read.count(OURS)} are read here as they were "
        f"written, while llama.cpp's parser refuses them; {read.count(DIFFERENT)} are read differently. The list below "
        "the table gives the reasons.\n\n"
    )
    return f"{INTRODUCTION.format(engine=record()['engine'])}{count}{head}\n" + "\n".join(rows) + f"\n\n{whys}\n"


def _said(name: str, key: str) -> str:
    sample, template = record()["templates"][name]["samples"][key], of_template(name)
    if template is None:
        return "–"
    calls = ours(template, sample["given"])
    if "error" in sample:
        return OURS if calls == expected(key) else "neither reads it"
    return EQUAL if calls == theirs(sample) else DIFFERENT
