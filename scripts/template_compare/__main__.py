"""Renders every chat with llama.cpp and each template in its source, and compares the results with ours."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scripts.api_compare.server import PARTS, WORK, NotStarted, request, serving
from scripts.engine_source import PROJECT, engine, fetch
from scripts.llama_server import add_options, server
from scripts.template_compare.page import PAGE, page
from testbed import tiny
from tests.backends.template_chats import CHATS, RECORD, keep

Json = dict[str, Any]

TEMPLATES = "models/templates/"
OPTIONS = ("--jinja", "--no-reasoning-preserve")  # earlier thoughts are omitted as the template does
DAY_S = 86_400


def main() -> None:
    """Write the record of the results, and the page that compares them with ours."""
    parser = argparse.ArgumentParser(prog="scripts.template_compare", description=__doc__)
    add_options(parser)
    parser.add_argument("--page", action="store_true", help="only write the page, from the record")
    options = parser.parse_args()
    if not options.page:
        program = server(options)
        keep(recorded(program))
        print(f"{RECORD.relative_to(PROJECT)}: {RECORD.stat().st_size} bytes")
    PAGE.write_text(page(), "utf-8")
    print(f"{PAGE.relative_to(PROJECT)} is written")


def recorded(program: Path) -> Json:
    """Return all results that the tests compare with ours. The server always uses the current date in UTC."""
    os.environ["TZ"] = "UTC"
    began = time.time()
    with tempfile.TemporaryDirectory(prefix="poolhouse-templates-") as folder:
        model = tiny.llama(Path(folder) / "tiny.gguf", layers=1, vocab=300)
        templates = dict(rendered(program, model, fetch(WORK, (*PARTS, TEMPLATES)) / TEMPLATES))
    if time.time() // DAY_S != began // DAY_S:
        raise SystemExit("The day changed meanwhile, and some templates name it. Record once more.")
    tokens = {"bos_token": tiny.CONTROL[0], "eos_token": tiny.CONTROL[1]}
    return {"engine": engine(), "now": int(began), "tokens": tokens, "templates": templates}


def rendered(program: Path, model: Path, folder: Path) -> Iterator[tuple[str, Json]]:
    """Yield the name of each template, with its text and the chats as rendered by the server."""
    for path in sorted(folder.glob("*.jinja")):
        made: dict[str, Json] = {}
        try:
            with serving(program, model, "tiny", *OPTIONS, "--chat-template-file", str(path)) as base:
                for name, chat in CHATS.items():
                    status, _, body = request(base, "POST", "/apply-template", chat)
                    reply = json.loads(body)
                    made[name] = {"prompt": reply["prompt"]} if status == 200 else {"error": reply["error"]["message"]}
        except NotStarted:
            made = {name: {"error": "the server does not start with it"} for name in CHATS}
        print(path.stem, {name: len(rendering.get("prompt", "")) for name, rendering in made.items()})
        yield path.stem, {"source": path.read_text("utf-8"), "chats": made}


if __name__ == "__main__":
    main()
