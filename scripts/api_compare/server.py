"""llama.cpp's own server: compiled from the hashed source package of the engine, and started."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from scripts.engine_source import engine, fetch

WORK = Path(__file__).resolve().parents[2] / "build" / "api_compare"
PARTS = ("CMakeLists.txt", "LICENSE", "cmake/", "common/", "ggml/", "include/", "licenses/", "scripts/", "src/",
         "tools/", "vendor/")  # fmt: skip
FLAGS = {
    "CMAKE_BUILD_TYPE": "Release",
    "CMAKE_C_FLAGS_RELEASE": "-O1",  # compiles in half the time, and is fast enough for tiny models
    "CMAKE_CXX_FLAGS_RELEASE": "-O1",
    "BUILD_SHARED_LIBS": "OFF",
    "GGML_NATIVE": "OFF",
    "GGML_LLAMAFILE": "OFF",
    "GGML_OPENMP": "OFF",
    "LLAMA_OPENSSL": "OFF",  # it downloads nothing
    "LLAMA_USE_PREBUILT_UI": "OFF",
    "LLAMA_BUILD_APP": "OFF",
    "LLAMA_BUILD_EXAMPLES": "OFF",
    "LLAMA_BUILD_TESTS": "OFF",
}
OF_CONNECTION = ("server", "connection", "keep-alive", "transfer-encoding", "content-length",
                 "accept-ranges")  # fmt: skip
SERVER = "llama-server.exe" if os.name == "nt" else "llama-server"
START_SECONDS, ANSWER_SECONDS = 60.0, 120.0


class NotStarted(SystemExit):
    """Raised if the server has exited or does not answer. Its own output is on stderr."""


def compiled(jobs: int) -> Path:
    """Return the path of the server. It is compiled once per engine version; an interrupted build is resumed."""
    source = fetch(WORK, PARTS)
    build = WORK / engine() / "build"
    if not (build / "build.ninja").exists():
        flags = [f"-D{name}={value}" for name, value in FLAGS.items()]
        run("cmake", "-G", "Ninja", "-S", source, "-B", build, *flags)
    run("cmake", "--build", build, "--target", "llama-server", "-j", jobs)
    return build / "bin" / SERVER


def run(tool: str, *words: object) -> None:
    """Run a build tool of the virtual environment, with its other tools on PATH."""
    tools = Path(sysconfig.get_path("scripts"))
    path = os.pathsep.join([str(tools), os.environ.get("PATH", os.defpath)])
    command = [str(tools / tool), *map(str, words)]
    subprocess.run(command, check=True, env={**os.environ, "PATH": path})


@contextmanager
def serving(program: Path, model: Path, name: str, *more: str) -> Iterator[str]:
    """Run the server with a model during the block. Yield its address."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    words = [program, "-m", model, "--alias", name, "--host", "127.0.0.1", "--port", port, "-c", 8192, "-np", 4,
             "-t", 1, "--offline", "--no-warmup", "--log-verbosity", 1, *more]  # fmt: skip
    process = subprocess.Popen([str(word) for word in words])
    base = f"127.0.0.1:{port}"
    try:
        end = time.monotonic() + START_SECONDS
        while not answers(base):
            if process.poll() is not None or time.monotonic() > end:
                raise NotStarted("llama.cpp's server does not start")
            time.sleep(0.2)
        yield base
    finally:
        process.terminate()
        process.wait(10)


def answers(base: str) -> bool:
    try:
        return request(base, "GET", "/health", None)[0] == 200
    except OSError:
        return False


def request(base: str, method: str, path: str, body: Any) -> tuple[int, dict[str, str], bytes]:
    """Return the status, headers and body of an answer. Headers about the connection itself are omitted."""
    data = None if body is None else json.dumps(body).encode()
    with closing(HTTPConnection(base, timeout=ANSWER_SECONDS)) as connection:
        connection.request(method, path, data, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answered = {name.lower(): value.partition(";")[0] for name, value in answer.getheaders()}
        headers = {name: value for name, value in answered.items() if name not in OF_CONNECTION}
        return answer.status, headers, answer.read()
