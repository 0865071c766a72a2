"""The parsers of untrusted bytes, the errors with which each may refuse them, and a few valid inputs."""

from __future__ import annotations

import gzip
import json
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from app.catalog.gguf import gguf_file, model_reader
from app.core.errors import AppError
from app.core.household import operations
from app.core.household.operations import BadOperation
from app.gateway.dialects import openai_requests
from app.machine.engine_packs import manifest, pack_reader
from app.network import messages
from app.network.discovery import announcement
from app.network.discovery.announcement import TxtRecord
from app.network.messages import BadMessage
from backends import frames, worker_orders
from backends.contract import NumberFormat, Segment
from backends.frames import BadFrame, Frame, FrameKind
from tests.backends.test_orders import ASKED
from tests.catalog.raw import array, small
from tests.core.household.test_membership import add, remove
from tests.machine.engine_packs import fake_pack
from tests.network.test_messages import SOME

CORPUS = Path(__file__).parent / "corpus"


@dataclass(frozen=True, slots=True)
class Target:
    """One parser. `refuses`: what says that these bytes are not right; anything else is a bug."""

    name: str
    read: Callable[[bytes], object]
    refuses: tuple[type[Exception], ...]
    right: Callable[[], list[bytes]]
    files: tuple[str, ...]  # whose lines a new input must reach

    @property
    def corpus(self) -> Path:
        return CORPUS / f"{self.name}.txt"

    def outcome(self, data: bytes) -> str:
        """`read`, or the name of what refused it. Raises anything that is a bug."""
        try:
            self.read(data)
        except self.refuses as error:
            return type(error).__name__
        return "read"


def _chat(data: bytes) -> None:
    chat_request = msgspec.json.decode(data, type=openai_requests.ChatRequest)
    chat_request.to_api_request(1)


@cache
def _scratch() -> Path:
    return Path(tempfile.mkdtemp(prefix="poolhouse-fuzz"))


def _model(data: bytes) -> None:
    path = _scratch() / "model.gguf"
    path.write_bytes(data)
    model_reader.model_of(gguf_file.read_header(path), "x", "0" * 64)


def _frames() -> list[bytes]:
    segments = (Segment(0, 1, 7), Segment(2, 3, 0))
    return [
        frames.encode_frame(Frame(kind, bytes(16), 1, 5, NumberFormat.F32, segments, bytes(16)))
        for kind in (FrameKind.STEP, FrameKind.FORGET, FrameKind.TEXT, FrameKind.LOST)
    ]


def _frame(data: bytes) -> None:
    frame = frames.decode_frame(data)
    frames.check_step(frame, frames.PipelineParameters(bytes(16), 1, NumberFormat.F32, 4, 256))


def _pack(data: bytes) -> None:
    """Install a pack from an archive whose unpacked content is `data`."""
    source, target = _scratch() / "pack.tar.gz", _scratch() / "pack"
    source.write_bytes(gzip.compress(data, 1))
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    pack_reader.copy_pack(source, target, lambda manifest: None)


def _packs() -> list[bytes]:
    """Return the unpacked content of a whole archive and of one with a link in it."""
    whole = fake_pack.members()
    link = fake_pack.member(f"pack/{fake_pack.LIBRARY}", b"", tarfile.SYMTYPE, "/bin/sh")
    archives = (fake_pack.archive_pack(_scratch() / "made.tar.gz", made) for made in (whole, [whole[0], link]))
    return [gzip.decompress(archive.read_bytes()).rstrip(b"\0") for archive in archives]


CHATS = (
    b'{"messages":[{"role":"user","content":"hi"}],"stop":["a"],"logit_bias":{"5":1}}',
    (
        b'{"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"response_format":'
        b'{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}},"logprobs":true}'
    ),
    (
        b'{"messages":[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]},'
        b'{"role":"tool","tool_call_id":"1","content":"x"}],"tools":[{"type":"function","function":'
        b'{"name":"f","parameters":{"type":"object"}}}],"tool_choice":"auto","max_tokens":3}'
    ),
)
TARGETS = (
    Target("frames", _frame, (BadFrame,), _frames, ("backends/frames.py",)),
    Target(
        "messages", messages.decode, (BadMessage,),
        lambda: [messages.encode(item) for item in SOME], ("app/network/messages.py",),
    ),
    Target(
        "orders", worker_orders.decode_order, (msgspec.MsgspecError, UnicodeDecodeError),
        lambda: [worker_orders.encode(item) for item in ASKED], ("backends/contract.py", "backends/worker_orders.py"),
    ),
    Target(
        "log", operations.decode, (BadOperation,),
        lambda: [operations.encode(operation) for operation in (add(0, 1), remove(0, 1))],
        ("app/core/household/operations.py",),
    ),
    Target(
        "announcements", announcement.parse_txt, (),
        lambda: [b"\x03v=2", b"\x03v=2\x08name=den\x09pair=4243", bytes(announcement_of("attic"))],
        ("app/network/discovery/announcement.py",),
    ),
    Target(
        "models", _model, (AppError,),
        lambda: [small().bytes(), small(more=[array("a", 4, 2, bytes(8))]).bytes()],
        ("app/catalog/gguf/gguf_file.py", "app/catalog/gguf/model_reader.py"),
    ),
    Target(
        "chats", _chat, (AppError, msgspec.MsgspecError, UnicodeDecodeError), lambda: list(CHATS),
        ("app/gateway/dialects/openai_requests.py",),
    ),
    Target(
        "manifests", lambda data: manifest.parse(data, "pack"), (AppError,),
        lambda: [json.dumps(fake_pack.manifest()).encode()], ("app/machine/engine_packs/manifest.py",),
    ),
    Target(
        "packs", _pack, (AppError,), _packs,
        ("app/machine/engine_packs/pack_reader.py", "app/machine/engine_packs/manifest.py"),
    ),
)  # fmt: skip


def announcement_of(name: str) -> bytes:
    fields = announcement.txt_fields(TxtRecord(2, name, 4243))
    lines = [f"{key}={value}".encode() for key, value in fields.items()]
    return b"".join(bytes([len(line)]) + line for line in lines)
