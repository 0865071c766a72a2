"""The inference engines on this machine and their devices.

Each engine is probed in a child process, because it may hang or crash.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated

import msgspec
from msgspec import Meta

from app.core.errors import Reason
from app.core.reasons import os_cause, size
from app.decoding import decode
from app.machine import paths
from backends.contract import LLAMACPP
from backends.worker.confine import Restrictions

ENGINES = (LLAMACPP,)  # each in its own child process, so that a broken driver does not hide the other engines
PROBE_SECONDS = 30.0  # an engine that looks for graphics cards may first compile code for them
MAX_OUTPUT_BYTES = 1 << 20  # of a child process's output
# processor features worth showing, best first
NOTABLE_FEATURES = ("AVX512", "AVX2", "AVX", "SVE", "NEON", "VSX", "RVV")

Name = Annotated[str, Meta(max_length=200)]
Bytes = Annotated[int, Meta(ge=0, le=1 << 60)]


class Device(msgspec.Struct, frozen=True):
    """A device that an engine can use: the processor, or an accelerator with its own or shared memory."""

    name: Name = ""
    description: Name = ""
    kind: Name = "other"  # cpu, gpu, igpu, accelerator, other
    api: Name = ""  # through which the engine uses the device: CUDA, ROCm, Vulkan, Metal or CPU
    free_bytes: Bytes = 0
    total_bytes: Bytes = 0
    pci: Name = ""  # its place on the PCI bus; empty if the back end does not report it


class Engine(msgspec.Struct, frozen=True):
    """An engine's description of itself, or the reason why it cannot be used."""

    name: Name
    version: Name = ""
    missing: Reason | None = None
    features: Annotated[list[Name], Meta(max_length=200)] = []  # processor features in use
    devices: Annotated[list[Device], Meta(max_length=64)] = []

    @property
    def build(self) -> str:
        """Return a string with the properties of the build that affect its speed."""
        return f"{self.name} {self.version} {' '.join(sorted(self.features))}"


class _Answer(msgspec.Struct, frozen=True):
    engines: list[Engine] = []


async def probe_all(within_s: float = PROBE_SECONDS) -> list[Engine]:
    """Probe all engines on this machine, each in its own child process. Does not raise if an engine is broken."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(probe(name, within_s), name=f"probe {name}") for name in ENGINES]
    return [task.result() for task in tasks]


async def probe(name: str, within_s: float = PROBE_SECONDS) -> Engine:
    """Probe one engine. If the child process hangs, it is killed and `missing` states the reason."""
    command = paths.python_command("-m", "backends", "probe", name)
    try:
        code, out, err = await run_child(command, within_s)
    except TimeoutError:
        return Engine(name, missing=Reason("no_answer_within", {"seconds": round(within_s)}))
    except OSError as error:
        return Engine(name, missing=Reason("engine_words", {"words": os_cause(error)}))
    return engine_of(name, code, out, err)


def engine_of(name: str, code: int, out: str, err: str) -> Engine:
    """Parse the output of an engine's child process. If it failed or its output is malformed, `missing` says why."""
    if code:
        return Engine(name, missing=last_words(err))
    try:
        engines = decode(out, _Answer).engines
    except (msgspec.DecodeError, UnicodeError):
        engines = []
    match = next((engine for engine in engines if engine.name == name), None)
    return match or Engine(name, missing=Reason("answer_not_understood"))


def describe(processor: str, engines: Sequence[Engine]) -> str:
    """Describe this machine in one line: its processor, the best processor feature in use, and its accelerators."""
    parts = [processor]
    features = {feature for engine in engines for feature in engine.features}
    parts += [name for name in NOTABLE_FEATURES if name in features][:1]
    parts += sorted({device_label(device) for engine in engines for device in accelerators(engine)})
    return " · ".join(parts)


def accelerators(engine: Engine) -> list[Device]:
    """Return the engine's devices other than the processor."""
    return [device for device in engine.devices if device.kind != "cpu"]


def device_label(device: Device) -> str:
    """Return a readable label for a device, including its memory."""
    name = device.description or device.name
    return f"{name} ({size(device.total_bytes)})" if device.total_bytes else name


async def run_child(
    command: Sequence[str], within_s: float, environment: Mapping[str, str] = MappingProxyType({})
) -> tuple[int, str, str]:
    """Run a command and return its exit code, output and errors. Raises TimeoutError if it had to be killed."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=paths.python_environment(**environment),
    )
    try:
        async with asyncio.timeout(within_s):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    assert process.returncode is not None
    return process.returncode, _text(out), _text(err)


def last_words(text: str) -> Reason:
    """Return a reason that quotes the last non-blank line of the output, without its final period."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return Reason("engine_words", {"words": lines[-1].rstrip(".")}) if lines else Reason("said_nothing")


def _text(data: bytes) -> str:
    return data[:MAX_OUTPUT_BYTES].decode(errors="replace")


WALLS_SECONDS = 10.0


_CODES = {
    Restrictions(files=True, network=True): "check_confined_full",
    Restrictions(files=True): "check_confined_files",
    Restrictions(network=True): "check_confined_network",
}


async def probe_walls() -> Restrictions | None:
    """Return the restrictions that would apply to a worker on this machine, or None if the probe fails."""
    command = paths.python_command("-m", "backends", "walls")
    try:
        code, out, _ = await run_child(command, WALLS_SECONDS)
        return None if code else decode(out, Restrictions)
    except (TimeoutError, OSError, msgspec.DecodeError):
        return None


def walls_code(walls: Restrictions | None, system: str = sys.platform) -> str:
    """Return the reason code that describes these restrictions, or why there are none on this operating system."""
    if walls is None:
        return "check_confined_unknown"
    neither = "check_confined_neither" if system == "linux" else "check_confined_none"
    return _CODES.get(walls, neither)
