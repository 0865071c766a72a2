"""Records how llama.cpp parses answers with tool calls, for each template in its source."""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path
from typing import Any

from scripts.api_compare.server import PARTS, WORK
from scripts.call_compare.page import PAGE, page
from scripts.engine_source import PROJECT, engine, fetch
from scripts.llama_server import add_options, read, server
from tests.backends.call_samples import RECORD, TOOLS, samples

TEMPLATES = "models/templates/"
SOURCE = Path(__file__).with_name("calls.cpp")


def main() -> None:
    """Write the record of the results, and the page that compares them with ours."""
    parser = argparse.ArgumentParser(prog="scripts.call_compare", description=__doc__)
    add_options(parser)
    parser.add_argument("--page", action="store_true", help="only write the page, from the record")
    options = parser.parse_args()
    if not options.page:
        source = fetch(WORK, (*PARTS, TEMPLATES))
        build = server(options).parents[1]
        RECORD.parent.mkdir(exist_ok=True)
        text = json.dumps(recorded(source, build), ensure_ascii=False, indent=0, sort_keys=True)
        RECORD.write_bytes(gzip.compress(text.encode(), mtime=0))
        print(f"{RECORD.relative_to(PROJECT)}: {RECORD.stat().st_size} bytes")
    PAGE.write_text(page(), "utf-8")
    print(f"{PAGE.relative_to(PROJECT)} is written")


def recorded(source: Path, build: Path) -> dict[str, Any]:
    """Return all results that the tests compare with ours."""
    templates: dict[str, Any] = {}
    written: dict[str, dict[str, list[str]]] = {}
    for path in sorted((source / TEMPLATES).glob("*.jinja")):
        text = path.read_text("utf-8")
        written[path.stem] = samples(text)[1]
        templates[path.stem] = {"source": text, "samples": written[path.stem]}
    readings = read(SOURCE, source, build, {"tools": TOOLS, "templates": templates})
    for name, template in templates.items():
        template["samples"] = {
            key: {"given": several[0], **readings[name][key]} for key, several in written[name].items()
        }
    return {"engine": engine(), "templates": templates}


if __name__ == "__main__":
    main()
