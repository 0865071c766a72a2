"""Records how llama.cpp parses answers with thoughts, for each template in its source."""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path
from typing import Any

from scripts.api_compare.server import PARTS, WORK
from scripts.engine_source import PROJECT, engine, fetch
from scripts.llama_server import add_options, read, server
from tests.backends.thought_samples import RECORD, form_of, samples, sources, where

SOURCE = Path(__file__).with_name("thoughts.cpp")


def main() -> None:
    """Write the record of the results."""
    parser = argparse.ArgumentParser(prog="scripts.thought_compare", description=__doc__)
    add_options(parser)
    options = parser.parse_args()
    source = fetch(WORK, PARTS)
    build = server(options).parents[1]
    RECORD.parent.mkdir(exist_ok=True)
    text = json.dumps(recorded(source, build), ensure_ascii=False, indent=0, sort_keys=True)
    RECORD.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{RECORD.relative_to(PROJECT)}: {RECORD.stat().st_size} bytes")


def recorded(source: Path, build: Path) -> dict[str, Any]:
    """Return all results that the tests compare with ours."""
    templates: dict[str, Any] = {}
    for name, text in sources().items():
        form = form_of(text)
        templates[name] = {"source": text, "samples": samples(form, where(text, form))}
    readings = read(SOURCE, source, build, templates)
    kept = {
        name: {key: sample | {"read": readings[name][key]} for key, sample in template["samples"].items()}
        for name, template in templates.items()
    }
    return {"engine": engine(), "templates": kept}


if __name__ == "__main__":
    main()
