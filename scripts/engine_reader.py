"""llama-server and programs that are linked with its libraries: from a build that is there, or a new one."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from scripts.api_compare.server import SERVER, compiled

HEADERS = ("common", "include", "ggml/include", "vendor")
LIBRARIES = ("common/libllama-common.a", "common/libllama-common-base.a", "src/libllama.a", "ggml/src/libggml.a",
             "ggml/src/libggml-cpu.a", "ggml/src/libggml-base.a", "vendor/cpp-httplib/libcpp-httplib.a",
             "vendor/hash/libvendor-hash.a")  # fmt: skip


def add_options(parser: ArgumentParser) -> None:
    """How the engine is compiled, or where it is already."""
    cores = os.cpu_count() or 1
    parser.add_argument("--jobs", type=int, default=cores, help="compilers at once")
    parser.add_argument("--build", type=Path, help="a folder where llama-server of this engine is compiled already")


def server(wanted: Namespace) -> Path:
    """The program llama-server."""
    build: Path | None = wanted.build
    return compiled(wanted.jobs) if build is None else build / "bin" / SERVER


def read(program: Path, source: Path, build: Path, given: Any) -> dict[str, Any]:
    """What a C++ program makes of this, which it is told as a file of JSON."""
    with tempfile.TemporaryDirectory(prefix="poolhouse-reader-") as folder:
        linked, asked, told = (Path(folder) / name for name in ("reader", "given.json", "found.json"))
        asked.write_text(json.dumps(given), "utf-8")
        command = [os.environ.get("CXX", "c++"), "-std=c++17", "-O1", str(program), "-o", str(linked)]
        command += [f"-I{source / name}" for name in HEADERS]
        command += [str(build / library) for library in LIBRARIES]
        subprocess.run([*command, "-lpthread", "-ldl"], check=True)
        subprocess.run([linked, asked, told], check=True)
        found: dict[str, Any] = json.loads(told.read_text("utf-8"))
    return found
