"""Identity is the key: the names under which machines, pipelines and sequences are known."""

from __future__ import annotations

from typing import NewType

MachineId = NewType("MachineId", str)  # 64 hex digits: SHA-256 of the machine's certificate (DER)
PipelineId = NewType("PipelineId", bytes)  # 16 random bytes, chosen by the host
SequenceId = NewType("SequenceId", int)  # counted by the host, never reused while it runs

MACHINE_ID_DIGITS = 64
PIPELINE_ID_BYTES = 16
MAX_NAME_CHARACTERS = 64

_HEX = frozenset("0123456789abcdef")


def machine_id(text: str) -> MachineId:
    """The id written in `text`. Raises ValueError unless it is 64 lower-case hex digits."""
    if len(text) != MACHINE_ID_DIGITS or not _HEX.issuperset(text):
        raise ValueError("a machine id is 64 hex digits")
    return MachineId(text)


def pipeline_id(text: str) -> PipelineId:
    """The id written in `text` as 32 lower-case hex digits. Raises ValueError for anything else."""
    if len(text) != 2 * PIPELINE_ID_BYTES or not _HEX.issuperset(text):
        raise ValueError("a pipeline id is 32 hex digits")
    return PipelineId(bytes.fromhex(text))
