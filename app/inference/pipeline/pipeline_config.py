"""The sizes of a pipeline."""

from __future__ import annotations

from dataclasses import dataclass

from backends.contract import KEEP_ALL, Keep

MAX_WAITING = 64


@dataclass(frozen=True, slots=True)
class PipelineConfig:
    """The sizes that a pipeline was opened with, and how it is used."""

    slots: int
    kv_cells: int  # positions over all slots
    context: int  # most positions of one slot
    n_vocab: int
    chunk_rows: int = 64  # rows of a micro-batch; its stages were opened for as many at least
    max_waiting: int = MAX_WAITING
    # slots are cut back to where their state was kept only, by this rule (backends/worker/kept_states.py)
    recurrent: bool = False
    keep: Keep = KEEP_ALL
    trained: int | None = None  # positions that the model was trained for; None: nobody said
