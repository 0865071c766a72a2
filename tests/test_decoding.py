"""Threads that meet a type for the first time together all get its value; by msgspec alone the process would end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from app.decoding import decode

TOGETHER = """
import sys, threading
from typing import Annotated, Literal
import msgspec
from app.decoding import decode

def kind(n):
    words = [(f"word{k}", Annotated[str, msgspec.Meta(pattern=f"^[a-z]{{1,{k + 1}}}$")]) for k in range(8)]
    part = msgspec.defstruct(f"Part{n}", words)
    name = Annotated[str, msgspec.Meta(min_length=1, max_length=99)]
    fields = [("parts", list[part]), ("side", Literal["a", "b"]), ("names", dict[name, name])]
    return msgspec.defstruct(f"Whole{n}", fields)

sys.setswitchinterval(1e-6)
part = {f"word{k}": "a" for k in range(8)}
data = msgspec.json.encode({"parts": [part], "side": "a", "names": {"x": "y"}})
read = []
for n in range(100):
    whole, together = kind(n), threading.Barrier(4)
    def work():
        together.wait()
        read.append(decode(data, whole).side)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
assert read == ["a"] * 400, len(read)
"""


class Point(msgspec.Struct):
    x: int


def test_threads_that_begin_with_a_type_together_all_read_it() -> None:
    project = Path(__file__).resolve().parents[1]
    done = subprocess.run([sys.executable, "-c", TOGETHER], cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr}"


def test_what_is_of_another_form_is_refused() -> None:
    assert decode(b'{"x": 3}', Point) == Point(3)
    assert decode(b'{"x": "3"}', Point, strict=False) == Point(3)
    with pytest.raises(ValueError, match="Expected `int`"):
        decode(b'{"x": "3"}', Point)
    with pytest.raises(ValueError, match="malformed"):
        decode(b"{x", Point)
