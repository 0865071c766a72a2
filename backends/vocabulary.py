"""Conversion between text and token ids, which needs only a model's vocabulary."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from backends import fake_engine
from backends.contract import StageError
from backends.llamacpp import binding

PIECES_AT_ONCE = 8192  # a frame of about 200 KiB
CONTROLS = re.compile("(" + "|".join(map(re.escape, fake_engine.CONTROL)) + ")")
FAKE_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


class Vocabulary(Protocol):
    """A model's loaded vocabulary and chat templates."""

    n_vocab: int
    end_tokens: tuple[int, ...]
    bos: int  # -1: none
    eos: int
    adds_bos: bool
    template: str  # empty: none
    tools_template: str  # the template for chats with tools, which differs in some models

    def piece(self, token: int) -> bytes:
        """Return the bytes that a token stands for. Control tokens have none."""
        ...

    def name(self, token: int) -> str:
        """Return the text that templates use for a control token, or an empty string for -1."""
        ...

    def markers(self) -> tuple[str, ...]:
        """Return the texts that are read as single tokens with a meaning of their own wherever they stand."""
        ...

    def tokenize(self, text: str, *, special: bool, bos: bool) -> list[int]: ...

    def close(self) -> None: ...


def open_vocabulary(path: str) -> Vocabulary:
    """Load a vocabulary. Raises StageError."""
    return FakeVocabulary(path) if path.startswith(fake_engine.PREFIX) else LlamaVocabulary(path)


def pieces(text: Vocabulary) -> Iterator[tuple[int, tuple[bytes, ...]]]:
    """Yield the bytes of all tokens in batches, each with the id of its first token."""
    for first in range(0, text.n_vocab, PIECES_AT_ONCE):
        last = min(first + PIECES_AT_ONCE, text.n_vocab)
        yield first, tuple(text.piece(token) for token in range(first, last))


def tokenize_with(llama: Any, vocab: Any, text: str, *, special: bool, bos: bool) -> list[int]:
    """Tokenize a text with a llama.cpp vocabulary."""
    data = text.encode("utf-8", "replace")  # an unpaired surrogate would end the process
    room = len(data) + 16
    while True:
        ids = np.empty(room, dtype=np.int32)
        count = llama.llama_tokenize(
            vocab, data, len(data), ctypes.cast(ids.ctypes.data, ctypes.POINTER(ctypes.c_int32)), room, bos, special
        )
        if count >= 0:
            return [int(token) for token in ids[:count]]
        room = -count


def markers_of(llama: Any, vocab: Any, templates: str) -> tuple[str, ...]:
    """Return the names of control tokens, and of other added tokens that the templates write.

    Added tokens that no template writes are ordinary text, such as HTML tags and runs of spaces.
    """
    meaning = int(llama.LLAMA_TOKEN_ATTR_CONTROL) | int(llama.LLAMA_TOKEN_ATTR_UNKNOWN)
    names: list[str] = []
    for token in range(int(llama.llama_vocab_n_tokens(vocab))):
        kind = int(llama.llama_vocab_get_attr(vocab, token))
        if kind & (meaning | int(llama.LLAMA_TOKEN_ATTR_USER_DEFINED)):
            name = (llama.llama_vocab_get_text(vocab, token) or b"").decode("utf-8", "replace")
            is_written = not (name.isspace() or name.isalnum()) and name in templates
            if kind & meaning or is_written:
                names.append(name)
    return tuple(name for name in names if len(name) > 1)


class LlamaVocabulary:
    """The vocabulary of a GGUF file."""

    def __init__(self, path: str) -> None:
        llama = self._llama = binding.load()
        self._model: Any = binding.load_model(path, vocabulary_only=True)
        vocab = self._vocab = llama.llama_model_get_vocab(self._model)
        self.n_vocab = int(llama.llama_vocab_n_tokens(vocab))
        if llama.llama_vocab_type(vocab) == llama.LLAMA_VOCAB_TYPE_NONE:
            self.close()
            raise StageError(f"{path} has no vocabulary")
        ends = (t for t in range(self.n_vocab) if llama.llama_vocab_is_eog(vocab, t))
        self.end_tokens = tuple(ends)
        self.bos = int(llama.llama_vocab_bos(vocab))
        self.eos = int(llama.llama_vocab_eos(vocab))
        self.adds_bos = bool(llama.llama_vocab_get_add_bos(vocab))
        own = llama.llama_model_chat_template(self._model, None) or b""
        of_tools = llama.llama_model_chat_template(self._model, b"tool_use") or own
        self.template = (own or of_tools).decode("utf-8", "replace")
        self.tools_template = of_tools.decode("utf-8", "replace")
        self._buffer = ctypes.create_string_buffer(1024)

    def piece(self, token: int) -> bytes:
        size = self._to_piece(token)
        if size < 0:  # the buffer is too small, and -size tokens are needed
            self._buffer = ctypes.create_string_buffer(-size)
            size = self._to_piece(token)
        return ctypes.string_at(self._buffer, size)

    def _to_piece(self, token: int) -> int:
        buffer = self._buffer
        size = self._llama.llama_token_to_piece(self._vocab, token, buffer, len(buffer), 0, False)
        return int(size)

    def name(self, token: int) -> str:
        if token < 0:
            return ""
        return (self._llama.llama_vocab_get_text(self._vocab, token) or b"").decode("utf-8", "replace")

    def tokenize(self, text: str, *, special: bool, bos: bool) -> list[int]:
        return tokenize_with(self._llama, self._vocab, text, special=special, bos=bos)

    def markers(self) -> tuple[str, ...]:
        return markers_of(self._llama, self._vocab, self.template + self.tools_template)

    def close(self) -> None:
        if self._model:
            self._llama.llama_model_free(self._model)
        self._model = None


class FakeVocabulary:
    """The fake engine's vocabulary: three control tokens and one token for each byte."""

    adds_bos: bool = True
    template: str = FAKE_TEMPLATE
    tools_template: str = FAKE_TEMPLATE
    bos: int = fake_engine.BOS
    eos: int = fake_engine.END
    end_tokens: tuple[int, ...] = (fake_engine.END,)

    def __init__(self, path: str) -> None:
        self.n_vocab = fake_engine.options(path).vocab

    def piece(self, token: int) -> bytes:
        byte = token - fake_engine.FIRST_BYTE
        return bytes([byte]) if 0 <= byte < 256 else b""

    def name(self, token: int) -> str:
        return fake_engine.CONTROL[token] if 0 <= token < len(fake_engine.CONTROL) else ""

    def tokenize(self, text: str, *, special: bool, bos: bool) -> list[int]:
        ids = [fake_engine.BOS] if bos else []
        for part in CONTROLS.split(text) if special else [text]:
            if special and part in fake_engine.CONTROL:
                ids.append(fake_engine.CONTROL.index(part))
            else:
                ids += [fake_engine.FIRST_BYTE + byte for byte in part.encode("utf-8", "replace")]
        return ids

    def markers(self) -> tuple[str, ...]:
        return fake_engine.CONTROL

    def close(self) -> None:
        """Do nothing: no memory needs to be released."""
