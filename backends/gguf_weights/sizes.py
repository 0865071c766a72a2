"""The model sizes in a GGUF file's metadata that all families have in common."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum

from backends.contract import StageError
from backends.gguf_weights.stage_file import StageFile

MAX_LAYERS, MAX_HEADS, MAX_EXPERTS = 4096, 65_536, 4096
MAX_HEAD = 4096  # values of a head
LEAST_SUM = 6.103515625e-5  # of the weights of experts: the smallest normal number in f16


class Pairs(Enum):
    """The pairing of a head's values for rotation."""

    ADJACENT = "adjacent"  # 0 and 1, 2 and 3, …; NORM in llama.cpp
    HALVES = "halves"  # those of the first half with those of the second; NEOX in llama.cpp


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes that every family's metadata contains."""

    n_layers: int
    width: int
    n_heads: int
    n_kv_heads: tuple[int, ...]  # of each layer
    key: int  # values of a key and of a query
    value: int
    n_rot: int
    eps: float
    base: float  # of the rotation

    @classmethod
    def of(cls, file: StageFile) -> Sizes:
        """Read the sizes. Raises StageError."""
        n_layers = file.integer("block_count") - file.integer("nextn_predict_layers", 0)
        width, n_heads = file.integer("embedding_length"), max(file.per_layer("attention.head_count", 1))
        if not (0 < n_layers <= MAX_LAYERS and 0 < n_heads <= MAX_HEADS and width):
            raise StageError(f"{file.path} has impossible sizes", "weights_metadata", key="attention.head_count")
        key = file.integer("attention.key_length", width // n_heads)
        value, n_rot = (
            file.integer("attention.value_length", width // n_heads),
            file.integer("rope.dimension_count", key),
        )
        base = file.number("rope.freq_base", 10_000.0)
        # checked here, because tables for all positions are made before any tensor is compared with them
        for name, is_possible in (
            ("attention.key_length", 0 < key <= MAX_HEAD),
            ("attention.value_length", 0 < value <= MAX_HEAD),
            ("rope.dimension_count", 0 < n_rot <= key and n_rot % 2 == 0),
            ("rope.freq_base", base > 1),
        ):
            if not is_possible:
                full = f"{file.architecture}.{name}"
                raise StageError(f"{file.path} has no usable {full}", "weights_metadata", key=full)
        return cls(
            n_layers, width, n_heads, file.per_layer("attention.head_count_kv", n_layers, n_heads), key, value, n_rot,
            file.number("attention.layer_norm_rms_epsilon", 1e-5), base,
        )  # fmt: skip


class Routing(IntEnum):
    """A method of converting the scores of experts to weights. The numbers are those that GGUF metadata uses."""

    SOFTMAX = 1  # over all experts
    SIGMOID = 2
    SOFTMAX_OF_CHOSEN = 3


@dataclass(frozen=True, slots=True)
class ExpertSizes:
    """The sizes and routing parameters of a mixture of experts."""

    n_experts: int
    n_used: int
    n_inner: int
    routing: Routing = Routing.SOFTMAX
    normed: bool = True  # the weights of the chosen experts add up to 1
    scale: float = 1.0
    n_groups: int = 1
    n_groups_used: int = 1

    @classmethod
    def of(cls, file: StageFile, **more: object) -> ExpertSizes:
        """Read the fields that all families store alike; the caller passes the others. Raises StageError."""
        n_experts, n_used = file.integer("expert_count", 0), file.integer("expert_used_count", 0)
        if not 0 < n_used <= n_experts <= MAX_EXPERTS:
            raise StageError(f"{file.path} has impossible experts", "weights_metadata", key="expert_used_count")
        n_inner = file.integer("expert_feed_forward_length", file.integer("feed_forward_length", 0))
        scale = file.number("expert_weights_scale", 0.0) or 1.0
        sizes = cls(n_experts, n_used, n_inner, scale=scale, **more)  # type: ignore[arg-type]
        if sizes.n_groups > 1 and not sizes.has_sound_groups:
            raise StageError(
                f"{file.path} has impossible groups of experts", "weights_metadata", key="expert_group_count"
            )
        return sizes

    @property
    def has_sound_groups(self) -> bool:
        """Return whether the groups of experts are equal and large enough for the experts that a token uses.

        A group is rated by its two best experts, so it has at least two.
        """
        in_group, rest = divmod(self.n_experts, self.n_groups)
        is_possible = 0 < self.n_groups_used <= self.n_groups and in_group >= 2 and not rest
        return is_possible and self.n_used <= self.n_groups_used * in_group
