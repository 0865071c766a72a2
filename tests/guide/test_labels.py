"""The Guide's answers name what the window really shows."""

import html
import re

import pytest

from guide.dataset import HERE, Topic, load_topics

WINDOW = HERE.parent / "resources/gui/translations/poolhouse_de.ts"
# Capitalized words that are no labels.
NAMES = re.compile(
    r"AppImage|Anthropic|API|Ctrl|English|GGUF|German|Guide|HTML|I|JSON|Jan|LM|Linux|MCP|Markdown|NAME|Ollama|Office|OpenAI"
    r"|PDF|Poolhouse|Q[248]|Studio|TLS|VPN|Wi-Fi|Windows"
)
SENTENCE = re.compile(r"(?:^|[.?:] )[A-Z]")
WORD = re.compile(r"[A-Z][\w'+-]*")


def labels() -> frozenset[str]:
    """Return the window's texts in English, and what comes before a comma or colon in them."""
    texts = map(html.unescape, re.findall(r"<source>(.*?)</source>", WINDOW.read_text("utf-8"), re.DOTALL))
    return frozenset(part for text in texts for part in (text.strip("…?"), re.split(r"[,:]", text)[0]) if part)


def strange(answer: str, known: frozenset[str]) -> list[str]:
    """Return the capitalized words within sentences of an answer that begin no label and are no name."""
    begins = {match.end() - 1 for match in SENTENCE.finditer(answer)}
    unknown, after = list[str](), 0
    for match in WORD.finditer(answer):
        at = match.start()
        if at < after or (at and answer[at - 1].isalnum()):
            continue
        ends = [
            end for end in range(at + 1, len(answer) + 1) if answer[at:end] in known and not answer[end:][:1].isalnum()
        ]
        if ends:
            after = max(ends)
        elif at not in begins and not NAMES.fullmatch(match[0].partition("+")[0]):
            unknown.append(answer[at:][:40])
    return unknown


@pytest.mark.parametrize("topic", load_topics(), ids=lambda topic: topic.name)
def test_every_label_in_an_answer_is_in_the_window(topic: Topic) -> None:
    assert strange(topic.answer, labels()) == []


def test_a_label_that_the_window_lacks_is_found() -> None:
    assert strange("On Pool press a machine and choose Leave out: a bar says it.", frozenset({"Pool"})) == [
        "Leave out: a bar says it."
    ]
