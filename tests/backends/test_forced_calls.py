"""A call that must be made, written by a model that knows nothing: what its grammar lets it write is read as a call.

For each way to call of llama.cpp's templates, on a tiny model whose vocabulary holds the signs of all, as real ones do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.core.tools.argument_values import GEMMA_QUOTE
from app.core.tools.call_grammar import calls_grammar
from app.core.tools.call_markers import markers_of
from backends.contract import CallFormat, CallSyntax, Layers, Role, Sampling, Segment, Tokens
from backends.hidden_state_codec import VALUE
from backends.llamacpp.stage import LlamaStage
from backends.sampling import make_sampler
from backends.vocabulary import LlamaVocabulary
from testbed import tiny
from tests.backends import cutting
from tests.backends.call_samples import TOOLS, of_template, ours, record

MOST_TOKENS = 1200
# What is added to the scores of signs, and of those that end a value: a model that knows nothing would not end a text.
ENDS_SOON, ENDS_VALUE = 7.0, 14.0
SCHEMAS = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
KINDS: dict[str, type] = {"string": str, "integer": int, "boolean": bool, "array": list}


def _formats() -> dict[str, CallFormat]:
    """Each way to call, under the name of the first template that has it."""
    call_format: dict[CallFormat, str] = {}
    for name in sorted(record()["templates"]):
        if (item := of_template(name)) is not None:
            call_format.setdefault(item, name)
    return {name: key for key, name in call_format.items()}


def _signs(call_format: CallFormat) -> set[str]:
    """Return the strings that are tokens of its models, and those that end a value, for a model that cannot end one."""
    return {sign for sign in (*_ends(call_format), *markers_of(call_format).all) if len(sign) > 1}


def _ends(call_format: CallFormat) -> set[str]:
    """Return the strings that end a value."""
    if call_format.payload is CallSyntax.GEMMA:
        return {GEMMA_QUOTE}
    if call_format.payload is not CallSyntax.NESTED:
        return {call_format.value_end, call_format.value_end.strip()} - {""}
    keys = [key for schema in SCHEMAS.values() for key in schema["properties"]]
    return {f"{call_format.value_end}{key}>" for key in ("item", *keys)}


FORMATS = _formats()
SIGNS = tuple(sorted(set[str]().union(*map(_signs, FORMATS.values()))))
FIRST_SIGN = 300
N_VOCAB = FIRST_SIGN + len(SIGNS)
BYTES_THAT_END = '"}])>\n'


class Writer:
    """A tiny model, and what its tokens mean."""

    def __init__(self, path: Path) -> None:
        value = cutting.config(path, Layers(0, 1), Role.WHOLE, 64, kv_cells=MOST_TOKENS + 8)
        self._stage, self._text = LlamaStage(value), LlamaVocabulary(str(path))

    def written(self, call_format: CallFormat, many: bool, seed: int) -> str:
        """Return the text that it writes to the end within the grammar of a call."""
        ends = _ends(call_format)
        own = ((FIRST_SIGN + SIGNS.index(sign), sign in ends) for sign in sorted(_signs(call_format)))
        soon = {tiny.FIRST_BYTE + ord(sign): ENDS_SOON for sign in BYTES_THAT_END} | {tiny.END: ENDS_SOON}
        soon[tiny.FIRST_BYTE + ord('"')] = ENDS_VALUE
        soon |= {token: ENDS_VALUE if is_end else ENDS_SOON for token, is_end in own}
        sampling = Sampling(
            temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, seed=seed,
            grammar=calls_grammar(call_format, SCHEMAS, many), logit_bias=tuple(soon.items()),
        )  # fmt: skip
        sampler = make_sampler(sampling, N_VOCAB, self._stage.vocabulary)
        self._stage.forget(0)
        result, token = b"", self._text.bos
        for pos in range(MOST_TOKENS):
            out: Any = self._stage.forward(Tokens((Segment(0, 1, pos),), [token]), [0])
            token = sampler.pick(np.frombuffer(out.rows, VALUE))
            if token in self._text.end_tokens:
                return result.decode("utf-8", "replace")
            result += self._text.piece(token)
        raise AssertionError(f"no end: {result!r}")

    def close(self) -> None:
        self._text.close()
        self._stage.close()


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Writer]:
    path = tmp_path_factory.mktemp("forced") / "whole.gguf"
    tiny.llama(path, layers=1, vocab=N_VOCAB, signs=SIGNS)
    with closing(Writer(path)) as ready:
        yield ready


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_a_forced_call_is_read_as_one(writer: Writer, name: str, many: bool) -> None:
    item = FORMATS[name]
    text = writer.written(item, many, seed=len(name))
    result, calls = ours(item, text)
    assert (result, bool(calls)) == ("", True), text
    assert many or len(calls) == 1
    for call in calls:
        schema = SCHEMAS[call["name"]]
        assert set(schema["required"]) <= set(call["arguments"]) <= set(schema["properties"])
        for key, value in call["arguments"].items():
            assert isinstance(value, KINDS[schema["properties"][key]["type"]]), text
    assert ours(item, text, 1) == (result, calls), text
