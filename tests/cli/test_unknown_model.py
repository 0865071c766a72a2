"""Tests of the message about a model that is not downloaded: it may be in the catalog, or be a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.fake_node import Failed, error


@pytest.mark.parametrize(
    ("name", "more"),
    [
        (
            "nothing",
            (
                " `poolhouse pull --home {home}` lists models to download, and "
                "`poolhouse import FILE --home {home}` adds a file."
            ),
        ),
        ("~/models/tiny.GGUF", " Import the file first: `poolhouse import FILE --home {home}`."),
    ],
)  # fmt: skip
def test_who_names_a_file_as_a_model_hears_that_it_is_imported_first(
    poolhouse: Any, answering: Any, home: Path, name: str, more: str
) -> None:
    sent = error("BadInput", "model_unknown", "Not used.", name=name, there="guide")
    answering({("POST", "/load"): Failed(404, sent)})
    said = poolhouse("load", name)
    plain = f"There is no model called {name}. Available: guide."
    assert (said.code, said.err) == (1, plain + more.format(home=home) + "\n")


@pytest.mark.parametrize("command", ["plan", "load", "unload", "ask"])
def test_the_nearest_names_of_shelf_and_catalog_are_suggested(
    poolhouse: Any, answering: Any, home: Path, command: str
) -> None:
    sent = error("BadInput", "model_unknown_near", "Not used.", name="gude", near="guide", there="guide, other")
    answering({("POST", f"/{command}"): Failed(404, sent)})
    command_line = ("ask", "Why?", "--model", "gude") if command == "ask" else (command, "gude")
    plain = "There is no model called gude. Did you mean guide? Available: guide, other."
    assert poolhouse(*command_line).err == plain + "\n"
    sent = error("BadInput", "model_unknown", "Not used.", name="phi4-mni", there="guide")
    answering({("POST", f"/{command}"): Failed(404, sent)})
    command_line = ("ask", "Why?", "--model", "phi4-mni") if command == "ask" else (command, "phi4-mni")
    more = f"The catalog has phi-4-mini: `poolhouse pull phi-4-mini --home {home}` downloads it."
    assert poolhouse(*command_line).err == f"There is no model called phi4-mni. Available: guide. {more}\n"


def test_a_mistyped_name_of_the_catalog_is_suggested(poolhouse: Any, answering: Any) -> None:
    answering({})
    assert poolhouse("pull", "phi4-mni").err == "phi4-mni is not in the catalog. Did you mean phi-4-mini?\n"


@pytest.mark.parametrize(
    ("name", "pulled"),
    [("Qwen3-8b", "qwen3-8b"), ("phi-4-m", "phi-4-mini"), ("llama-3.1-8b:q8_0", "llama-3.1-8b:Q8_0")],
)
@pytest.mark.parametrize("command", ["plan", "load"])
def test_a_model_of_the_catalog_is_not_denied(
    poolhouse: Any, answering: Any, home: Path, command: str, name: str, pulled: str
) -> None:
    sent = error("BadInput", "model_unknown", "Not used.", name=name, there="guide")
    answering({("POST", f"/{command}"): Failed(404, sent)})
    plain = f"{pulled} is in the catalog but has not been downloaded yet."
    more = f"`poolhouse pull {pulled} --home {home}` downloads it."
    assert poolhouse(command, name).err == f"{plain} {more}\n"


def test_the_beginning_of_several_in_the_catalog(poolhouse: Any, answering: Any, home: Path) -> None:
    sent = error("BadInput", "model_unknown", "Not used.", name="gemma-3", there="guide")
    answering({("POST", "/load"): Failed(404, sent)})
    plain = "You have no model called gemma-3. Matches in the catalog: "
    there = "gemma-3-1b, gemma-3-4b, gemma-3-12b, gemma-3-27b"
    more = f"{there}. `poolhouse pull NAME --home {home}` downloads one."
    assert poolhouse("load", "gemma-3").err == f"{plain}{more}\n"
