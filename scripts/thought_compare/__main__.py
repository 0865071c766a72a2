"""Have llama.cpp read answers with thoughts for each template of its source, and write down what it finds."""

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
from scripts.engine_source import PROJECT, engine, fetch
from tests.backends.thought_samples import RECORD, form_of, samples, sources, where

SOURCE = Path(__file__).with_name("thoughts.cpp")
HEADERS = ("common", "include", "ggml/include", "vendor")
LIBRARIES = ("common/libllama-common.a", "common/libllama-common-base.a", "src/libllama.a", "ggml/src/libggml.a",
             "ggml/src/libggml-cpu.a", "ggml/src/libggml-base.a", "vendor/cpp-httplib/libcpp-httplib.a",
             "vendor/hash/libvendor-hash.a")  # fmt: skip


def main() -> None:
    """Write the record."""
    parser = argparse.ArgumentParser(prog="scripts.thought_compare", description=__doc__)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="compilers at once")
    parser.add_argument("--source", type=Path, help="where the engine's source is already")
    parser.add_argument("--build", type=Path, help="where its server is compiled already")
    wanted = parser.parse_args()
    source = wanted.source or fetch(WORK, PARTS)
    build = wanted.build or compiled(wanted.jobs).parents[1]
    RECORD.parent.mkdir(exist_ok=True)
    told = json.dumps(recorded(source, build), ensure_ascii=False, indent=0, sort_keys=True)
    RECORD.write_bytes(gzip.compress(told.encode(), mtime=0))
    print(f"{RECORD.relative_to(PROJECT)}: {RECORD.stat().st_size} bytes")


def recorded(source: Path, build: Path) -> dict[str, Any]:
    """All that the tests compare with."""
    given: dict[str, Any] = {}
    for name, text in sources().items():
        form = form_of(text)
        given[name] = {"source": text, "samples": samples(form, where(text, form))}
    found = _read(source, build, given)
    kept = {
        name: {key: sample | {"read": found[name][key]} for key, sample in one["samples"].items()}
        for name, one in given.items()
    }
    return {"engine": engine(), "templates": kept}


def _read(source: Path, build: Path, given: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="poolhouse-thoughts-") as folder:
        program, asked, told = (
            Path(folder) / name for name in ("read", "given.json", "found.json")
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
