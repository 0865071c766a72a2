"""Converts a GGUF header into a Model. Refuses files that are damaged, malicious or not language models."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from math import prod
from pathlib import Path

from app.catalog.families import layer_metadata
from app.catalog.families.family_table import FAMILIES, boundaries, family_facts
from app.catalog.families.layer_metadata import MAX_LAYERS, check_lists
from app.catalog.gguf import tensor_types
from app.catalog.gguf.chat_facts import TEMPLATE, chat_facts, template_of
from app.catalog.gguf.gguf_file import Header, Scalar, Tensor, part_paths, printable, read_header
from app.core.errors import BadInput, Reason
from app.core.model import Cuts, Model, Weights

# Limits far beyond every known model. A file that exceeds them is damaged or hostile.
MAX_WIDTH = 1 << 17
MAX_VOCABULARY = 1 << 22
MAX_CONTEXT = 1 << 30
MAX_HEADS = 1 << 14
KV_VALUE_BYTES = 2  # f16
KV_BLOCK = 32  # values in a block of q8_0

EMBEDDING, HEAD, HEAD_BIAS = "token_embd.weight", "output.weight", "output.bias"
EXPERTS = "_exps."  # in the names of tensors with a matrix for each expert
_ARCHITECTURE = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_LAYER = re.compile(r"blk\.(\d{1,6})\.")


def model_of(header: Header, name: str, model_id: str) -> Model:
    """Return the model that a header describes. Raises BadInput if its metadata is impossible or it is not a language
    model."""
    check(header)
    architecture = architecture_of(header)
    check_finite(header, architecture)
    n_layers = layer_metadata.n_layers(header)
    width = header.integer(f"{architecture}.embedding_length", 1, MAX_WIDTH)
    parts = _parts(header, n_layers)
    n_vocab = _vocabulary(header, width)
    where, runs, why_whole = boundaries(header, architecture, n_vocab)
    facts, chat = family_facts(header, architecture, width, n_vocab), chat_facts(header)
    return Model(
        id=model_id,
        name=name,
        architecture=architecture,
        n_layers=n_layers,
        width=width,
        n_vocab=n_vocab,
        context_length=header.integer(f"{architecture}.context_length", 1, MAX_CONTEXT),
        weights=Weights(
            layer_bytes=parts.layers,
            embedding_bytes=header.tensors[EMBEDDING].n_bytes,
            head_bytes=head_tensor(header).n_bytes,
            tied=HEAD not in header.tensors,
            shared_bytes=parts.shared,
            idle_bytes=facts.idle_bytes,
            last_idle_bytes=facts.last_idle_bytes,
            expert_bytes=parts.experts,
        ),
        cuts=Cuts(boundaries=where, whole_reason=why_whole, rules=runs, first=facts.first, later=facts.later),
        kv_bytes_per_token=_kv_bytes_per_token(header, architecture, n_layers, width),
        file_bytes=header.file_bytes,
        quantization=_quantization(header),
        license=header.text("general.license"),
        has_template=chat.has_template,
        state_bytes=facts.state_bytes,
        quantized_kv=_quantized_kv(header, architecture, width),
        embeds=embeds(header, architecture),
        writes=writes(header, architecture),
        ranks=ranks(header, architecture),
        n_parameters=sum(prod(tensor.shape) for tensor in header.tensors.values()),
        has_tools=chat.has_tools,
        thinks=chat.thinks,
        languages=chat.languages,
        maker=chat.maker,
    )


def architecture_of(header: Header) -> str:
    architecture = header.text("general.architecture")
    if "general.architecture" not in header.entries:
        raise BadInput("gguf_key_missing", path=header.path, key="general.architecture")
    if not _ARCHITECTURE.fullmatch(architecture):
        raise header.invalid("general.architecture", printable(architecture))
    if header.integer("split.count", 0, 1 << 16, 0) > header.n_parts:
        part = header.integer("split.no", 0, 1 << 16, 0) + 1
        parts = header.integer("split.count", 0, 1 << 16, 0)
        raise BadInput("gguf_part", path=header.path, part=part, parts=parts)
    return architecture


def layer_of(tensor_name: str) -> int | None:
    """Return the index of the layer that a tensor belongs to, or None for the embedding, the head and shared
    tensors."""
    match = _LAYER.match(tensor_name)
    return int(match[1]) if match else None


def head_tensor(header: Header) -> Tensor:
    """Return the output matrix. If the weights are tied, this is the embedding."""
    return header.tensors.get(HEAD) or header.tensors[EMBEDDING]


@dataclass(frozen=True, slots=True)
class _Parts:
    layers: tuple[int, ...]
    shared: int
    experts: tuple[int, ...]


def _parts(header: Header, n_layers: int) -> _Parts:
    layers, experts, shared = [0] * n_layers, [0] * n_layers, 0
    n_blocks = layer_metadata.n_blocks(header)
    for name, tensor in header.tensors.items():
        layer = layer_of(name)
        if layer is not None and layer >= n_blocks:
            raise BadInput("gguf_layer_extra", path=header.path, name=printable(name), layers=n_blocks)
        if layer is not None and layer >= n_layers:
            continue  # for multi-token prediction, which the engine does not load
        if layer is not None:
            layers[layer] += tensor.n_bytes
            experts[layer] += tensor.n_bytes if EXPERTS in name else 0
        elif name not in (EMBEDDING, HEAD):
            shared += tensor.n_bytes
    if 0 in layers:
        raise BadInput("gguf_layer_missing", path=header.path, layer=layers.index(0))
    return _Parts(tuple(layers), shared, tuple(experts))


def _vocabulary(header: Header, width: int) -> int:
    """Return the vocabulary size. The embedding, the output matrix and the list of tokens must agree on it."""
    if EMBEDDING not in header.tensors:
        raise BadInput("gguf_tensor_missing", path=header.path, name=EMBEDDING)
    shape = header.tensors[EMBEDDING].shape
    if len(shape) != 2 or shape[0] != width or shape[1] > MAX_VOCABULARY:
        raise BadInput("gguf_shape", path=header.path, name=EMBEDDING, shape=str(shape))
    head = head_tensor(header).shape
    if head != shape:
        raise BadInput("gguf_shape", path=header.path, name=HEAD, shape=str(head))
    tokens = header.entries.get("tokenizer.ggml.tokens")
    if tokens is not None and tokens.count != shape[1]:
        raise header.invalid(
            "tokenizer.ggml.tokens", Reason("tokens_for_rows", {"count": tokens.count, "rows": shape[1]})
        )
    return shape[1]


def _kv_bytes_per_token(header: Header, architecture: str, n_layers: int, width: int) -> tuple[int, ...]:
    """Return the KV cache size per position in each layer, in bytes: KV heads x (key + value length) x 2 bytes."""
    key = f"{architecture}.attention.head_count"
    n_blocks = layer_metadata.n_blocks(header)
    heads = header.integers(key, n_blocks, 0, MAX_HEADS)
    if heads is None:
        raise BadInput("gguf_key_missing", path=header.path, key=key)
    heads_kv = header.integers(f"{key}_kv", n_blocks, 0, MAX_HEADS) or heads
    default = width // max(1, *heads)
    if default == 0:
        raise header.invalid(key, Reason("heads_for_width", {"count": max(heads), "width": width}))
    lengths = [
        header.integer(f"{architecture}.attention.{part}_length", 1, MAX_WIDTH, default) for part in ("key", "value")
    ]
    return tuple(n * sum(lengths) * KV_VALUE_BYTES for n in heads_kv[:n_layers])


def _quantized_kv(header: Header, architecture: str, width: int) -> bool:
    """Return whether the KV cache may be quantized, which requires that each head's keys and values are whole blocks.

    Source: llama_init_from_model. Layers with a sliding window have the same lengths as the others unless the file
    specifies different ones.
    """
    heads = header.integers(f"{architecture}.attention.head_count", layer_metadata.n_blocks(header), 0, MAX_HEADS)
    default = width // max(1, *(heads or (1,)))
    for name in ("attention.key_length", "attention.value_length"):
        everywhere = layer_metadata.number(header, name, default)
        windows = layer_metadata.number(header, f"{name}_swa", everywhere)
        if everywhere % KV_BLOCK or windows % KV_BLOCK:
            return False
    return True


def _quantization(header: Header) -> str:
    """Return the name of the quantization mix or, if the file does not name it, the number type of most bytes."""
    mix = tensor_types.MIXES.get(header.integer("general.file_type", 0, 1 << 16, 1 << 16))
    if mix is not None:
        return mix
    by_kind: dict[int, int] = {}
    for tensor in header.tensors.values():
        by_kind[tensor.kind] = by_kind.get(tensor.kind, 0) + tensor.n_bytes
    return tensor_types.TENSORS[max(by_kind, key=lambda kind: by_kind[kind])][0]


MAX_ROPE = 1 << 17  # the same limit as for a model's width


MAX_EXPERTS = 1 << 16


PAIR = 2


PLANE_VALUES = 4  # two pairs, since rule F5 assigns one each to the second and the third plane


_EPSILONS = ("layer_norm_rms_epsilon", "layer_norm_epsilon")


def check_finite(header: Header, architecture: str) -> None:
    """Raise BadInput for metadata that would make the engine crash, loop forever, or compute non-finite numbers."""
    if architecture in FAMILIES:  # for other families, the lengths of per-layer lists are not known
        check_lists(header)
    for name in _EPSILONS:
        _check_epsilon(header, f"{architecture}.attention.{name}")
    _check_rope(header, architecture)
    _check_experts(header, f"{architecture}.expert_")


def _check_epsilon(header: Header, key: str) -> None:
    """Refuse a normalization epsilon that is not between 0 and 1."""
    if key not in header.entries:
        return
    for epsilon in _values(header, key):
        if not isinstance(epsilon, float) or not math.isfinite(epsilon) or not 0 <= epsilon < 1:
            raise header.invalid(key, str(epsilon))


def _values(header: Header, key: str) -> tuple[Scalar, ...]:
    """Return an entry's values: one for all layers, or one per layer. Raises BadInput if the list is longer."""
    count = header.entries[key].count
    if count > MAX_LAYERS:
        raise header.invalid(key, Reason("value_count", {"count": count}))
    return header.items(key)


def _check_rope(header: Header, architecture: str) -> None:
    """Refuse invalid rotary dimensions. Values rotate in pairs, and rule F5 needs at least two pairs."""
    family = FAMILIES.get(architecture)
    least = 0
    if family is not None:  # with no values to rotate, the engine loops forever for some of these families
        least = PLANE_VALUES if family.planes > 1 else PAIR
    for name in ("count", "count_swa"):
        key = f"{architecture}.rope.dimension_{name}"
        if key in header.entries and (count := header.integer(key, least, MAX_ROPE)) % 2:
            raise header.invalid(key, str(count))


def _check_experts(header: Header, prefix: str) -> None:
    """Refuse metadata according to which a token uses more experts than the model has."""
    value = header.entries.get(f"{prefix}used_count")
    if value is None:
        return
    n_experts = header.integer(f"{prefix}count", 0, MAX_EXPERTS, 0)
    for count in _values(header, f"{prefix}used_count"):
        if not isinstance(count, int) or not 0 <= count <= n_experts:
            raise header.invalid(f"{prefix}used_count", Reason("count_of", {"count": count, "most": n_experts}))


# Encoders: positions also see later ones, and no next token is predicted. Source: llama.cpp's llm_arch.
ENCODERS = frozenset(
    {"bert", "nomic-bert", "nomic-bert-moe", "jina-bert-v2", "jina-bert-v3", "neo-bert", "modern-bert", "eurobert",
     "gemma-embedding", "llama-embed"}
)  # fmt: skip


NONE, RANK = 0, 4  # llama.cpp's pooling types without a vector; 1 to 3 are mean, first and last


MOST = 64


def writes(header: Header, architecture: str) -> bool:
    """Return whether the model generates text. Encoders and rerankers do not."""
    return architecture not in ENCODERS and not ranks(header, architecture)


def embeds(header: Header, architecture: str) -> bool:
    """Return whether the model can embed texts, that is, whether its file says how to pool positions into one
    vector."""
    return _kind(header, architecture) not in (NONE, RANK)


def ranks(header: Header, architecture: str) -> bool:
    """Return whether the model is a reranker, which scores how well a text answers a query."""
    return _kind(header, architecture) == RANK


def _kind(header: Header, architecture: str) -> int:
    return header.integer(f"{architecture}.pooling_type", 0, MOST, NONE)


# Architectures of models that generate images, videos or sounds, and that llama.cpp does not run.
MAKES_PICTURES = frozenset(
    {"aura", "chroma", "cosmos", "flux", "flux2", "hidream", "hunyuan_image", "hunyuan_video", "hyvid", "lens", "ltxv",
     "lumina2", "mochi", "omnigen2", "qwen_image", "sana", "sd1", "sd2", "sd3", "sdxl", "wan", "z_image"}
)  # fmt: skip


PROJECTORS = ("clip.", "mmproj.")


ADAPTER_ENDS = (".lora_a", ".lora_b")


def check(header: Header) -> None:
    """Raise BadInput for a GGUF file that is not a language model, such as an adapter, projector or image model."""
    kind = header.text("general.type").casefold()
    architecture = header.text("general.architecture").casefold()
    if architecture == "controlvector":
        raise BadInput("gguf_control_vector", path=header.path)
    if kind == "adapter" or "adapter.type" in header.entries or _is_lora(header):
        base = printable(header.text("general.base_model.0.name"))
        if base:
            raise BadInput("gguf_lora_of", path=header.path, model=base)
        raise BadInput("gguf_lora", path=header.path)
    if kind == "mmproj" or architecture in ("clip", "mmproj") or _has(header, *PROJECTORS):
        raise BadInput("gguf_mmproj", path=header.path)
    if kind == "imatrix" or _has(header, "imatrix."):
        raise BadInput("gguf_imatrix", path=header.path)
    if architecture in MAKES_PICTURES:
        raise BadInput("gguf_pictures", path=header.path, architecture=architecture)
    if not header.tensors and "tokenizer.ggml.tokens" in header.entries:
        raise BadInput("gguf_vocabulary", path=header.path)


def _is_lora(header: Header) -> bool:
    return bool(header.tensors) and all(name.endswith(ADAPTER_ENDS) for name in header.tensors)


def _has(header: Header, *beginnings: str) -> bool:
    return any(key.startswith(beginnings) for key in header.entries)


PRE = "tokenizer.ggml.pre"


KNOWN = frozenset(
    {"", "a.x-4.0", "afmoe", "bailingmoe", "bailingmoe2", "bloom", "chameleon", "chatglm-bpe", "codeshell",
     "cohere2moe", "command-r", "dbrx", "deepseek-coder", "deepseek-llm", "deepseek-r1-qwen", "deepseek-v3",
     "default", "exaone", "exaone-moe", "exaone4", "f2llmv2", "falcon", "falcon-h1", "falcon3", "gemma4",
     "gigachat", "glm4", "glm5", "gpt-2", "gpt-4o", "gpt3-finnish", "granite-docling",
     "granite-embed-multi-311m", "granite-embed-multi-97m", "grok-2", "hunyuan", "hunyuan-dense", "hy_v4",
     "jais", "jais-2", "jina-de", "jina-es", "jina-v1-en", "jina-v2-code", "jina-v2-de", "jina-v2-es",
     "jina-v5-nano", "joyai-llm", "kanana2", "kimi-k2", "kormo", "laguna", "lfm2", "llada-moe", "llama-bpe",
     "llama-v3", "llama3", "llama4", "megrez", "mellum", "mellum2", "midm-2.0", "minerva-7b", "minicpm5",
     "minimax-m2", "modern-bert", "mpt", "olmo", "phi-2", "pixtral", "poro-chat", "qwen2", "qwen35", "refact",
     "roberta-bpe", "sarvam-moe", "seed-coder", "smaug-bpe", "smollm", "solar-open", "spark2_5", "stablelm2",
     "starcoder", "superbpe", "talkie", "tekken", "tiny_aya", "trillion", "ufakzeka", "viking", "whitespace",
     "youtu"}
)  # fmt: skip


TOKENS = "tokenizer.ggml.tokens"


MOST_TEXT = 4096  # characters


MOST_ENTRIES = 512


@dataclass(frozen=True, slots=True)
class Card:
    """The details of a model file that clients see: its chat template and its metadata."""

    template: str  # the unmodified chat template, or "" if there is none
    entries: dict[str, Scalar]  # single values by their GGUF keys, not lists; long texts are truncated
    bos: str  # text of the token that begins a prompt, as templates write it, or ""
    eos: str


def read_card(path: Path) -> Card:
    """Read the details of a model file from its header. Raises BadInput."""
    header = read_header(part_paths(path)[0])
    single = {
        key: header.items(key)[0] for key, value in header.entries.items() if not value.is_array and key != TEMPLATE
    }
    entries = {
        key: printable(value, MOST_TEXT) if isinstance(value, str) else value
        for key, value in list(single.items())[:MOST_ENTRIES]
    }
    return Card(template_of(header), entries, _token(header, "bos"), _token(header, "eos"))


def _token(header: Header, role: str) -> str:
    tokens = header.entries.get(TOKENS)
    number = header.integer(f"tokenizer.ggml.{role}_token_id", -1, 1 << 31, -1)
    if tokens is None or not tokens.is_array or not 0 <= number < tokens.count:
        return ""
    return printable(str(header.items(TOKENS)[number]))
