"""The self-test of an engine pack: a child process lists the devices that it sees through the pack's libraries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from app.core.errors import Fact, Reason
from app.core.reasons import os_cause
from app.decoding import decode
from app.machine import paths
from app.machine.engine_packs.manifest import label
from app.machine.engine_packs.store import Tested
from app.machine.hardware.engines import Device, last_words, run_child
from backends.contract import BACKENDS, LLAMACPP

TEST_SECONDS = 60.0  # a driver may first compile code for its card
_MAX_WORDS = 300


class _Engine(msgspec.Struct):
    missing: str | None = None
    missing_backends: Annotated[dict[str, str], Meta(max_length=100)] = {}  # why libraries were not loaded, by path
    devices: Annotated[list[Device], Meta(max_length=64)] = []


class _Answer(msgspec.Struct):
    engines: Annotated[list[_Engine], Meta(min_length=1, max_length=1)]


async def self_test(backend: str, libraries: Mapping[str, Path], within_s: float = TEST_SECONDS) -> Tested:
    """Test the libraries of a pack in a child process, which may hang or crash."""
    command = paths.python_command("-m", "backends", "probe", LLAMACPP)
    listed = json.dumps([str(path) for path in libraries.values()])
    try:
        code, out, err = await run_child(command, within_s, {BACKENDS: listed})
    except TimeoutError:
        return _failed(Reason("no_answer_within", {"seconds": round(within_s)}))
    except OSError as error:
        return _failed(os_cause(error))
    return result_of(backend, code, out, err)


def result_of(backend: str, code: int, out: str, err: str) -> Tested:
    """Parse the output of a self-test's child process."""
    if code:
        return _failed(last_words(err))
    try:
        engine = decode(out, _Answer).engines[0]
    except (msgspec.DecodeError, UnicodeError):
        return _failed(Reason("answer_not_understood"))
    if engine.missing:
        return _failed(Reason("engine_words", {"words": engine.missing[:_MAX_WORDS].rstrip(".")}))
    devices = [device for device in engine.devices if device.kind != "cpu"]
    if devices:
        return Tested(devices)
    if engine.missing_backends:
        path, words = next(iter(engine.missing_backends.items()))
        return Tested(failure=Reason("pack_not_loaded", {"why": _loader_cause(words, path)}))
    return Tested(failure=Reason("pack_no_device", {"backend": label(backend)}))


def _loader_cause(words: str, path: str) -> str:
    """Return the system's message for a library that could not be loaded.

    It follows the last mention of `path`.
    """
    cause = words.rpartition(f"{Path(path).name}: ")[2].strip() or words
    return cause[:_MAX_WORDS].rstrip(".")


def _failed(why: Fact) -> Tested:
    return Tested(failure=Reason("pack_test_failed", {"why": why}))
