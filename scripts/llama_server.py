"""llama-server, and programs that link its libraries, from an existing or a new build.

`python -m scripts.llama_server` compiles it from the engine's hashed source (five minutes on two cores) and prints its
path. `make servers` needs it.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from scripts.api_compare.server import SERVER, WORK, compiled
from scripts.engine_source import engine

HEADERS = ("common", "include", "ggml/include", "vendor")
LIBRARIES = ("common/libllama-common.a", "common/libllama-common-base.a", "src/libllama.a", "ggml/src/libggml.a",
             "ggml/src/libggml-cpu.a", "ggml/src/libggml-base.a", "vendor/cpp-httplib/libcpp-httplib.a",
             "vendor/hash/libvendor-hash.a")  # fmt: skip


def add_options(parser: ArgumentParser) -> None:
    """Add the options that specify how to compile the engine, or where an existing build is."""
    cores = os.cpu_count() or 1
    parser.add_argument("--jobs", type=int, default=cores, help="compilers at once")
    parser.add_argument("--build", type=Path, help="a folder where llama-server of this engine is compiled already")


def server(options: Namespace) -> Path:
    """Return the path of llama-server. Compile it if necessary."""
    build: Path | None = options.build
    return compiled(options.jobs) if build is None else build / "bin" / SERVER


def built() -> Path | None:
    """Return the path of llama-server, or None if it is not compiled yet."""
    program = WORK / engine() / "build" / "bin" / SERVER
    return program if program.exists() else None


def read(program: Path, source: Path, build: Path, payload: Any) -> dict[str, Any]:
    """Compile and run a C++ program, which reads the payload from one JSON file and writes its result to another."""
    with tempfile.TemporaryDirectory(prefix="poolhouse-reader-") as folder:
        linked, input_file, output_file = (Path(folder) / name for name in ("reader", "given.json", "found.json"))
        input_file.write_text(json.dumps(payload), "utf-8")
        command = [os.environ.get("CXX", "c++"), "-std=c++17", "-O1", str(program), "-o", str(linked)]
        command += [f"-I{source / name}" for name in HEADERS]
        command += [str(build / library) for library in LIBRARIES]
        subprocess.run([*command, "-lpthread", "-ldl"], check=True)
        subprocess.run([linked, input_file, output_file], check=True)
        output: dict[str, Any] = json.loads(output_file.read_text("utf-8"))
    return output


def main() -> None:
    """Compile llama-server if necessary, and print its path."""
    parser = ArgumentParser(description=__doc__)
    add_options(parser)
    print(server(parser.parse_args()))


if __name__ == "__main__":
    main()
