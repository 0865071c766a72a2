"""A chat as HTML: one file, nothing is loaded from anywhere, all foreign text escaped."""

from __future__ import annotations

from dataclasses import asdict
from html import escape
from string import Template

from app.core.chat import Chat
from app.gui.chat.export import export_words as words
from app.gui.chat.message import markdown
from app.gui.look.theme import DARK, LIGHT, Colours

# Even if a browser found something to load or to run in it, it may not.
HEAD = Template("""<!DOCTYPE html>
<html lang="$lang"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
:root { $light color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root { $dark } }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem;
  background: var(--window); color: var(--text); }
article + article { margin-top: 4rem; }
section { background: var(--card); border: 1px solid var(--hairline); border-radius: .75rem;
  padding: .25rem 1rem; margin: 1rem 0; overflow-wrap: anywhere; }
section.mine { border-color: var(--accent); }
h1 { font-size: 1.5rem; } h2 { font-size: .85rem; color: var(--muted); }
p.h1, p.h2, p.h3, p.h4, p.h5, p.h6 { font-weight: 600; }
.facts { color: var(--muted); }
details { color: var(--muted); }
.typed, pre { white-space: pre-wrap; }
pre, code { background: var(--code); border-radius: .3rem; font-family: monospace; }
pre { padding: .75rem; } code { padding: 0 .2rem; } pre code { padding: 0; }
table { border-collapse: collapse; border-color: var(--hairline); } a { color: var(--accent); }
blockquote { border-left: .25rem solid var(--hairline); margin-left: 0; padding-left: 1rem; }
</style></head><body>
""")
TAIL = "</body></html>\n"


def head(title: str, language: str) -> str:
    """The beginning of the file."""
    return HEAD.substitute(title=escape(title), lang=escape(language), light=_tokens(LIGHT), dark=_tokens(DARK))


def article(chat: Chat) -> str:
    """One chat."""
    parts = [f"<article><h1>{escape(words.title(chat))}</h1>"]
    parts.append(f'<p class="facts">{escape(words.facts(chat))}</p>')
    if chat.system:
        parts.append(_section(words.system_words(), _typed(chat.system)))
    for said in words.spoken(chat):
        title = f"{said.who} · {said.when}" if said.when else said.who
        files = "".join(
            f"<p><b>{escape(words.attachment_words(name))}</b></p><pre>{escape(text)}</pre>"
            for name, text in said.attachments
        )
        if said.thought:
            inside = rendered(said.thought)
            files += f"<details><summary>{escape(words.thought_words())}</summary>{inside}</details>"
        body = _typed(said.text) if said.mine else rendered(said.text)
        parts.append(_section(title, files + body, mine=said.mine))
    return "\n".join((*parts, "</article>\n"))


def rendered(text: str) -> str:
    """An answer's Markdown. What is nested too deeply is shown as it was written."""
    source = text.split("\n")
    parts = []
    for block in markdown.blocks(markdown.tokens(text)):
        if markdown.is_deep(block):
            first, last = markdown.lines(block)
            parts.append(_typed("\n".join(source[first:last])))
        else:
            parts.append(markdown.html(block))
    return "".join(parts)


def _section(title: str, body: str, *, mine: bool = False) -> str:
    kind = ' class="mine"' if mine else ""
    return f"<section{kind}><h2>{escape(title)}</h2>{body}</section>"


def _typed(text: str) -> str:
    return f'<p class="typed">{escape(text)}</p>'


def _tokens(colours: Colours) -> str:
    return " ".join(f"--{name}: {value};" for name, value in asdict(colours).items())
