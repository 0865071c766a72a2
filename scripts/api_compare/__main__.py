"""Sends all test cases to llama.cpp's own server, and records the structure of its answers."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from app.machine.installation import guide_file
from scripts.api_compare.server import request, serving
from scripts.engine_source import PROJECT, engine
from scripts.llama_server import add_options, server
from tests import tiny_bert
from tests.gateway.answer_shape import shape_of
from tests.gateway.call_cases import call_cases
from tests.gateway.compared import Case, cases, is_sure, ollama_cases, vector_cases
from tests.gateway.system_cases import MODEL as ONE_SYSTEM
from tests.gateway.system_cases import llama3, system_cases
from tests.gateway.tool_cases import MODEL, hermes, tool_cases

RECORD = PROJECT / "tests" / "gateway" / "llama_server.json"


def main() -> None:
    """Run all cases and write the record."""
    parser = argparse.ArgumentParser(prog="scripts.api_compare", description=__doc__)
    add_options(parser)
    program = server(parser.parse_args())
    with tempfile.TemporaryDirectory(prefix="poolhouse-compare-") as folder:
        record = dict(recorded(program, Path(folder)))
    RECORD.write_text(json.dumps({"engine": engine(), "cases": record}, indent=1, sort_keys=True) + "\n", "utf-8")
    good = sum(entry["status"] == 200 for entry in record.values())
    print(f"{len(record)} cases, {good} answered, in {RECORD.relative_to(PROJECT)}")


def recorded(program: Path, folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield each case with the answer of the server."""
    with serving(program, guide_file(), "guide") as base:
        yield from responses(base, cases() | ollama_cases() | system_cases("guide"))
    bert = tiny_bert.bert(folder / "bert.gguf")
    with serving(program, bert, "bert", "--embeddings") as base:
        yield from responses(base, vector_cases())
    with serving(program, hermes(folder), MODEL, "--jinja") as base:
        yield from responses(base, tool_cases() | call_cases())
    with serving(program, llama3(folder), ONE_SYSTEM, "--jinja") as base:
        yield from responses(base, system_cases(ONE_SYSTEM))


def responses(base: str, cases: Mapping[str, Case]) -> Iterator[tuple[str, Any]]:
    for name, case in cases.items():
        status, headers, body = request(base, *case)
        shape = shape_of(body, is_sure(case))
        yield name, {"status": status, "headers": headers, "shape": shape}


if __name__ == "__main__":
    main()
