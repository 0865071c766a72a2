"""The facts that a model file states, compared with what a worker finds out that runs its chat template."""

from __future__ import annotations

import time
from pathlib import Path

import gguf
import pytest

from app.catalog.gguf.chat_facts import abilities, chat_facts
from app.catalog.gguf.gguf_file import read_header
from backends.templates.template_calls import call_format
from backends.templates.template_reasoning import of_template
from tests.backends.template_chats import record

TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
# writes earlier calls, but not in a form that could be read back
UNWRITTEN = {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B"}
TOOLS = "{%- if tools %}{{ tools | tojson }}{% endif %}{{ messages }}"


@pytest.mark.parametrize("name", sorted(record()["templates"]))
def test_searching_a_template_finds_what_running_it_finds(name: str) -> None:
    template = str(record()["templates"][name]["source"])
    runs = call_format(template, TOKENS) is not None, not of_template(template, TOKENS).is_habit
    assert (abilities(template) == runs) is (name not in UNWRITTEN)


def test_words_outside_of_code_say_nothing() -> None:
    assert abilities("You have no tools. {{ messages }} enable_thinking") == (False, False)
    assert abilities(TOOLS) == (True, False)


def test_a_hostile_template_takes_no_time() -> None:
    started = time.process_time()
    for piece in ("{%", "{{", "{% tools", "<", "{%\n" * 3):
        abilities(piece * 300_000)
    assert time.process_time() - started < 5


def header_of(tmp_path: Path, template: str | None, languages: list[str], maker: str) -> Path:
    path = tmp_path / "m.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    if template is not None:
        writer.add_chat_template(template)
    if languages:
        writer.add_languages(languages)
    if maker:
        writer.add_organization(maker)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_facts_come_from_the_file(tmp_path: Path) -> None:
    facts = chat_facts(read_header(header_of(tmp_path, TOOLS, ["de", "EN", "de", "x-1", "\n"], "Maker")))
    assert (facts.has_template, facts.has_tools, facts.thinks) == (True, True, False)
    assert (facts.languages, facts.maker) == (("de", "en"), "Maker")


def test_a_file_that_states_nothing_has_no_facts(tmp_path: Path) -> None:
    facts = chat_facts(read_header(header_of(tmp_path, None, [], "")))
    assert facts == type(facts)()
