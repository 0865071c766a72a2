"""The metadata of a stage that differs from its model's: one function for each rule (rules.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from app.catalog.families.cut_boundaries import is_lite
from app.catalog.families.cut_rules import Rule
from app.catalog.families.family_table import Family
from app.catalog.families.layer_kinds import RECURRENT_LAYERS, WINDOW, WINDOW_LAYERS, Kinds, recurrents, windows
from app.catalog.families.variants import n_layers, named, number
from app.catalog.gguf import tensor_types
from app.catalog.gguf.gguf_bytes import entry, u32_entry
from app.catalog.gguf.gguf_header import Header
from app.core.model import PLACEHOLDER_ROWS, Model
from backends.contract import Layers, Role

SOFTMAX, SIGMOID = 1, 2  # llama_expert_gating_func_type
SIGMOID_LAYERS, SIGMOID_VOCABULARY = (47, 48), 154_880  # GLM-4.7-Flash

Entries = Iterator[tuple[str, bytes | None]]  # key, the new entry; None: it is left out


@dataclass(frozen=True, slots=True)
class Job:
    """A run of a model that is to become a stage."""

    model: Model
    header: Header
    family: Family
    layers: Layers
    role: Role

    def key(self, name: str) -> str:
        return named(self.header, name)

    def has(self, name: str) -> bool:
        return self.key(name) in self.header.entries


def changed_entries(job: Job) -> dict[str, bytes | None]:
    """What takes the place of the model's own entries."""
    if job.role is Role.WHOLE:
        return dict([_number(job, "vocab_size", job.model.n_vocab)])
    found = dict(_always(job))
    for rule, entries in BY_RULE.items():
        if rule in job.family.rules:
            found.update(entries(job))
    return found


def _always(job: Job) -> Entries:
    n_vocab = job.model.n_vocab if job.role is Role.LAST else PLACEHOLDER_ROWS
    yield _number(job, "block_count", len(job.layers))
    yield _number(job, "vocab_size", n_vocab)


def _dense_lead(job: Job) -> Entries:
    name = "leading_dense_block_count"
    if job.has(name):
        last = min(number(job.header, name), job.layers.last)
        yield _number(job, name, max(0, last - job.layers.first))


def _windows(job: Job) -> Entries:
    kinds = windows(job.header, job.family)
    if kinds is None:
        return
    own = kinds[job.layers.first : job.layers.last]
    if job.family.window and job.family.window.may_go and not any(own):
        yield job.key(WINDOW), None
        yield job.key(WINDOW_LAYERS), None
    else:
        yield _kinds(job, WINDOW_LAYERS, own)


def _recurrents(job: Job) -> Entries:
    kinds = recurrents(job.header, job.family)
    if kinds is not None:
        yield _kinds(job, RECURRENT_LAYERS, kinds[job.layers.first : job.layers.last])


def _planes(job: Job) -> Entries:
    """Of the pairs of values that a position turns, all by the first plane: the others are the same."""
    half = rotary(job) // 2
    sections = (half - 2, 1, 1, 0)
    key = job.key("rope.dimension_sections")
    yield key, entry(key, tensor_types.U32, sections, is_list=True)


def _no_predictors(job: Job) -> Entries:
    if job.has("nextn_predict_layers"):
        yield _number(job, "nextn_predict_layers", 0)


def _no_deepstack(job: Job) -> Entries:
    if job.has("n_deepstack_layers"):
        yield _number(job, "n_deepstack_layers", 0)


def _guesses(job: Job) -> Entries:
    n, n_vocab = n_layers(job.header), job.model.n_vocab
    if is_lite(job.header, n_vocab):
        yield _number(job, "attention.q_lora_rank", 0)
    if number(job.header, "expert_gating_func") == 0:
        flash = n in SIGMOID_LAYERS and n_vocab == SIGMOID_VOCABULARY
        yield _number(job, "expert_gating_func", SIGMOID if flash else SOFTMAX)


def _scaled_once(job: Job) -> Entries:
    """The host looks embeddings up as they are, and the first run scales them."""
    if job.role is not Role.FIRST and job.has("embedding_scale"):
        key = job.key("embedding_scale")
        yield key, entry(key, tensor_types.F32_VALUE, (1.0,))


BY_RULE: dict[Rule, Callable[[Job], Entries]] = {
    Rule.F2: _dense_lead,
    Rule.F3: _windows,
    Rule.F4: _recurrents,
    Rule.F5: _planes,
    Rule.F6: _no_predictors,
    Rule.F9: _no_deepstack,
    Rule.F11: _guesses,
    Rule.F12: _scaled_once,
}


def rotary(job: Job) -> int:
    """Values of a head that positions turn."""
    heads = max(1, number(job.header, "attention.head_count", 1))
    length = number(job.header, "attention.key_length", job.model.width // heads)
    return number(job.header, "rope.dimension_count", length)


def _number(job: Job, name: str, value: int) -> tuple[str, bytes]:
    key = job.key(name)
    return key, u32_entry(key, value)


def _kinds(job: Job, name: str, kinds: Kinds) -> tuple[str, bytes]:
    key = job.key(name)
    return key, entry(key, tensor_types.BOOL, kinds, is_list=True)
