"""`python -m scripts.causes` generates docs/causes.md: the cause, message and retry advice for each reason code."""

from __future__ import annotations

from app.core.reasons import SENTENCES
from app.core.recovery.fault_table import TABLE, Fault, Retry
from scripts.engine_source import PROJECT

PAGE = PROJECT / "docs" / "causes.md"
HEAD = """# Whose fault it is

Everything that Poolhouse refuses, and everything that can end a load or an answer, has a code.
`app/core/recovery/fault_table.py` gives the cause of each code and says what is retried automatically; recovery,
loads and the planner follow it. The sentence is made from the code and its facts where somebody reads it. `python -m
scripts.causes` writes this page, and a test compares it with the code.

Retried: *never*, because the same bytes would fail in the same way; *once*, because it may have been chance; *again*,
on the machines that are there; *elsewhere*, without the machine in question.
"""
TOLD = {
    Fault.REQUEST: "The request: what somebody asked for, typed or chose",
    Fault.MODEL: "The model: its file, or the numbers it computes",
    Fault.ENGINE: "The engine: llama.cpp, or how it is installed",
    Fault.MEMORY: "Memory, or room on a disk",
    Fault.MACHINE: "A machine, or a process on it",
    Fault.LINK: "The link between machines",
    Fault.OWNER: "A person, or a rule that somebody set",
    Fault.HOUSEHOLD: "The household: its log, pairing, identities",
    Fault.SOURCE: "A source of models, or another server that answers",
    Fault.APP: "This installation: its files, its settings, its own bugs",
    Fault.NEWS: "Nothing is wrong: news",
}


def page() -> str:
    """Return the page for the current code."""
    lines = [HEAD]
    for fault in Fault:
        codes = [(code, blame.retry) for code, blame in TABLE.items() if blame.fault is fault]
        rows = sorted(codes, key=lambda code: (-list(Retry).index(code[1]), code[0]))
        lines.append(f"\n## {TOLD[fault]}\n\n| code | tried again | what is told |\n|---|---|---|\n")
        lines += [f"| {code} | {retry} | {_cell(SENTENCES[code])} |\n" for code, retry in rows]
    return "".join(lines)


def _cell(sentence: str) -> str:
    return sentence.replace("|", "\\|").replace("\n", " ").strip()


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(f"{PAGE.relative_to(PROJECT)} is written")
