"""Have llama.cpp read answers with calls for each template of its source, and write down what it finds."""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from scripts.api_compare.server import PARTS, WORK, compiled
from scripts.call_compare.page import PAGE, page
from scripts.engine_source import PROJECT, engine, fetch
from tests.backends.call_samples import RECORD, TOOLS, samples

TEMPLATES = "models/templates/"
SOURCE = Path(__file__).with_name("calls.cpp")
HEADERS = ("common", "include", "ggml/include", "vendor")
LIBRARIES = ("common/libllama-common.a", "common/libllama-common-base.a", "src/libllama.a", "ggml/src/libggml.a",
             "ggml/src/libggml-cpu.a", "ggml/src/libggml-base.a", "vendor/cpp-httplib/libcpp-httplib.a",
             "vendor/hash/libvendor-hash.a")  # fmt: skip


def main() -> None:
    """Write the record and the page."""
    parser = argparse.ArgumentParser(prog="scripts.call_compare", description=__doc__)
    cores = os.cpu_count() or 1
    parser.add_argument("--jobs", type=int, default=cores, help="compilers at once")
    parser.add_argument("--page", action="store_true", help="only write the page, from the record")
    parser.add_argument("--build", type=Path, help="where this engine's server is compiled already")
    wanted = parser.parse_args()
    if not wanted.page:
        source = fetch(WORK, (*PARTS, TEMPLATES))
        build = wanted.build or compiled(wanted.jobs).parents[1]
        RECORD.parent.mkdir(exist_ok=True)
        told = json.dumps(recorded(source, build), ensure_ascii=False, indent=0, sort_keys=True)
        RECORD.write_bytes(gzip.compress(told.encode(), mtime=0))
        print(f"{RECORD.relative_to(PROJECT)}: {RECORD.stat().st_size} bytes")
    PAGE.write_text(page(), "utf-8")
    print(f"{PAGE.relative_to(PROJECT)} is written")


def recorded(source: Path, build: Path) -> dict[str, Any]:
    """All that the tests compare with."""
    given: dict[str, Any] = {}
    written: dict[str, dict[str, list[str]]] = {}
    for path in sorted((source / TEMPLATES).glob("*.jinja")):
        text = path.read_text("utf-8")
        written[path.stem] = samples(text)[1]
        given[path.stem] = {"source": text, "samples": written[path.stem]}
    found = _read(source, build, {"tools": TOOLS, "templates": given})
    for name, one in given.items():
        one["samples"] = {
            key: {"given": several[0], **found[name][key]} for key, several in written[name].items()
        }
    return {"engine": engine(), "templates": given}


def _read(source: Path, build: Path, given: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="poolhouse-calls-") as folder:
        program, asked, told = (
            Path(folder) / name for name in ("calls", "given.json", "found.json")
        )
        asked.write_text(json.dumps(given), "utf-8")
        command = [
            os.environ.get("CXX", "c++"),
            "-std=c++17",
            "-O1",
            str(SOURCE),
            "-o",
            str(program),
        ]
        command += [f"-I{source / folder}" for folder in HEADERS]
        command += [str(build / library) for library in LIBRARIES]
        subprocess.run([*command, "-lpthread", "-ldl"], check=True)
        subprocess.run([program, asked, told], check=True)
        found: dict[str, Any] = json.loads(told.read_text("utf-8"))
    return found


if __name__ == "__main__":
    main()
