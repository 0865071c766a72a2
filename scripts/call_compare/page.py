"""The page that says for each template whether llama.cpp's server and Poolhouse read the same in its calls."""

from __future__ import annotations

from scripts.engine_source import PROJECT
from tests.backends.call_samples import CALLS, DIFFERS, REFUSED, compared, expected, of_template, ours, record, theirs

PAGE = PROJECT / "docs" / "tools.md"
EQUAL, OURS, DIFFERENT = "equal", "read here alone, see below", "differs, see below"
HEADS = {
    "one": "a call",
    "other": "with a list and two lines",
    "two": "two calls",
    "text": "text before a call",
    "none": "text alone",
}
INTRODUCTION = """# Calls of tools, template by template

How a model writes calls is seen in what its chat template makes of calls whose names and values are known
(`backends/templates/template_calls.py`); no name that only occurs in a template counts. Below, for each template that
llama.cpp's
source ships ({engine}): answers as the template itself writes them, read by llama.cpp's own parser and by ours, in one
piece and letter by letter. Names, arguments and text are compared. `make call-compare` records anew.

| form | what stands between the signs |
|---|---|
| objects | `{{"name": …, "arguments": {{…}}}}`, alone or in a list, under the keys that the template uses |
| named | the tool's name between signs, then its arguments as JSON |
| tagged | the name, then each argument between signs of its own |
| nested | as tagged, and what is in an argument too |
| python | `[name(key='value')]` |
| gemma | `call:name{{key:<\\|"\\|>text<\\|"\\|>}}` |
| harmony | a message to `functions.name` |

A call that must be made (`tool_choice`) is held to this form by a grammar, with arguments of its schema; a test has a
model that knows nothing write a call within each of these grammars, and reads it. Arguments are streamed while they
come, but for python, gemma and nested, where they are told once they are whole. A model whose template shows no calls
refuses tools. SmolLM3's own template is told tools as `xml_tools`; the edition that llama.cpp ships tells a model none.

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
    head = f"| template | form | {' | '.join(HEADS[key] for key in CALLS)} |\n|---|---|{'---|' * len(CALLS)}"
    whys = "\n".join(f"- {name}, {HEADS[key]}: {why}." for (name, key), why in sorted({**DIFFERS, **REFUSED}.items()))
    count = (
        f"**{read.count(EQUAL)} of {len(read)} answers are read alike**; {read.count(OURS)} are read here, as they "
        f"were written, where llama.cpp's parser refuses them; {read.count(DIFFERENT)} are read otherwise. Why stands "
        "below for each.\n\n"
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
