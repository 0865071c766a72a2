"""`python -m bench wire-quality [MODEL…]`: the effect of each wire type on a model's predictions of real text.

No text is generated. A given text runs through the whole model, and through its stages with each wire type between
them. At each position, the distributions of the next token are compared by their KL divergence from the whole
model's, and by whether the most likely token is the same. Greedy answers would be no measure, because a single
different token changes everything after it.

The whole model is no absolute truth either: computing the same text in other chunks, or without flash attention,
changes the last digits. This noise is measured in the same way and shown in the same table. With quantized weights
of 4 to 8 bits, the engine rounds the input of each matrix product to 8 bits, and the smallest difference changes
some of those roundings. Therefore no wire type except f32 can be better than that noise. With --unrounded, the
model is also measured with 32-bit weights. The engine then rounds nothing, and only the effect of the wire type
remains.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.catalog.shelf import Entry, Shelf
from app.catalog.stages.stage_store import StageStore
from backends.contract import Hidden, Layers, Logits, NumberFormat, Role, Segment, StageConfig, Tokens
from backends.hidden_state_codec import bytes_of, decode_hidden, encode_hidden
from backends.llamacpp import binding
from backends.llamacpp.stage import LlamaStage
from backends.vocabulary import open_vocabulary
from bench import report
from bench.children import ChildFailed
from bench.job import say
from scripts import real_models

PROJECT = Path(__file__).resolve().parent.parent
TEXTS = ("README.md", "docs/commands.md", "app/core/chat.py")
TOKENS = 2048
CHUNK = 64
EXACT_TOKENS = 4 * CHUNK
STAGE_BYTES = 64 << 30  # of the store in a temporary folder
TITLE = "What each wire type takes"
# Bars from issue 31: mean KL divergence and top-1 agreement at every cut, and the bytes of a value.
BARS = {NumberFormat.F16: (1e-4, 0.995, 2.02), NumberFormat.Q8: (5e-3, 0.97, 1.15)}

Scores = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Divergence:
    """The distance of a computation from the whole model, over all positions of the text."""

    mean_kl: float  # nats
    p999_kl: float
    top1: float  # share of positions with the same likeliest token
    largest: float  # largest difference of a logit


@dataclass(frozen=True, slots=True)
class Way:
    """A way to compute the text."""

    cuts: tuple[int, ...] = ()  # empty for the whole model
    number: NumberFormat = NumberFormat.F32
    chunk: int = CHUNK
    flash: bool = True


NOISE = (Way(chunk=32), Way(chunk=128), Way(flash=False))  # the whole model computed differently


def divergences(whole: Scores, other: Scores) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return KL(whole || other) in nats for each row of logits, and whether the most likely token is the same.

    Both arguments have the shape [n, n_vocab].
    """
    p, q = _log_softmax(whole), _log_softmax(other)
    kl = np.sum(np.exp(p) * (p - q), axis=1, dtype=np.float64)
    return np.maximum(kl, 0.0), whole.argmax(axis=1) == other.argmax(axis=1)


def _log_softmax(scores: Scores) -> Scores:
    shifted = scores - scores.max(axis=1, keepdims=True)
    norm: Scores = np.log(np.exp(shifted).sum(axis=1, keepdims=True, dtype=np.float64))
    log_p: Scores = (shifted - norm).astype(np.float32)
    return log_p


class Stages:
    """The stages of a model in this process, connected by a wire type."""

    def __init__(self, configs: Sequence[StageConfig]) -> None:
        self._stages: list[LlamaStage] = []
        self._width = configs[0].width
        try:
            self._stages += (LlamaStage(config) for config in configs)
        except BaseException:
            self.close()
            raise

    def scores(self, ids: Sequence[int], pos: int, number: NumberFormat) -> Scores:
        """Return the logits [n, n_vocab] after each of these tokens. They are valid until the next call."""
        segments = tuple(Segment(0, 1, pos + at) for at in range(len(ids)))
        batch: Tokens | Hidden = Tokens(segments, ids)
        due = range(len(ids))
        for stage in self._stages:
            out = stage.forward(batch, due)
            if isinstance(out, Logits):
                return np.frombuffer(out.rows, dtype=np.float32).reshape(len(ids), -1)
            rows = np.frombuffer(out.rows, dtype=np.float32).reshape(-1, self._width)
            there = decode_hidden(encode_hidden(rows, number), self._width, number)
            batch = Hidden(segments, bytes_of(np.ascontiguousarray(there)))
        raise AssertionError("the last stage gives logits")

    def forget(self) -> None:
        """Clear the KV cache to start the text over."""
        for stage in self._stages:
            stage.forget(0)

    def close(self) -> None:
        """Release the memory of all stages."""
        for stage in self._stages:
            stage.close()


class Judge:
    """A comparison of ways to compute one text with one model.

    The whole model's logits are computed once and stored in a file.
    """

    def __init__(self, path: Path, folder: Path, text: str, n_tokens: int, threads: int) -> None:
        store = StageStore(folder / "stages", STAGE_BYTES)
        self._stages = store
        self._shelf = Shelf(folder / "models", folder / "no-guide", store)
        self.entry: Entry = self._shelf.import_file(path)
        vocabulary = open_vocabulary(str(path))
        self.ids = vocabulary.tokenize(text, special=False, bos=vocabulary.adds_bos)[:n_tokens]
        vocabulary.close()
        self._threads = threads
        self._whole = np.memmap(folder / "whole.f32", np.float32, "w+", shape=(len(self.ids), vocabulary.n_vocab))
        with self._open(Way()) as stages:
            for at, scores in self._chunks(stages, Way()):
                self._whole[at : at + len(scores)] = scores

    def of(self, way: Way, stages: Stages | None = None) -> Divergence:
        """Compute the text in this way, and compare the logits with those of the whole model."""
        with ExitStack() as stack:
            line = stages or stack.enter_context(self._open(way))
            kls, same, largest = list[NDArray[np.float64]](), list[NDArray[np.bool_]](), 0.0
            for at, scores in self._chunks(line, way):
                whole = np.asarray(self._whole[at : at + len(scores)])
                kl, agree = divergences(whole, scores)
                largest = max(largest, float(np.abs(whole - scores).max()))
                kls.append(kl)
                same.append(agree)
        kl, agree = np.concatenate(kls), np.concatenate(same)
        return Divergence(float(kl.mean()), float(np.quantile(kl, 0.999)), float(agree.mean()), largest)

    def each(self, cuts: tuple[int, ...], numbers: Sequence[NumberFormat]) -> Iterator[Divergence]:
        """Compare each wire type for one split, loading its stages only once."""
        with self._open(Way(cuts)) as stages:
            for number in numbers:
                yield self.of(Way(cuts, number), stages)

    def _chunks(self, stages: Stages, way: Way) -> Iterator[tuple[int, Scores]]:
        stages.forget()
        is_exact = way.cuts and way.number is NumberFormat.F32  # bit for bit, which a few chunks suffice to show
        for at in range(0, EXACT_TOKENS if is_exact else len(self.ids), way.chunk):
            yield at, stages.scores(self.ids[at : at + way.chunk], at, way.number)

    @contextmanager
    def _open(self, way: Way) -> Iterator[Stages]:
        stages = Stages([self._config(way, *run) for run in runs(self.entry.model.n_layers, way.cuts)])
        try:
            yield stages
        finally:
            stages.close()

    def _config(self, way: Way, layers: Layers, role: Role) -> StageConfig:
        path = self.entry.path
        if role is not Role.WHOLE:
            path = str(self._stages.write_stage(self._shelf.cut(self.entry, layers, role)))
        model = self.entry.model
        # Each token of a chunk is its own segment, so that the tail returns the logits of all of them.
        return StageConfig(
            "llamacpp", path, self.entry.path, role, layers, model.width,
            slots=way.chunk, kv_cells=-(-len(self.ids) // 256) * 256, batch_rows=way.chunk,
            threads=self._threads, flash_attention=way.flash, traits=model.cuts.traits(role),
        )  # fmt: skip


def runs(n_layers: int, cuts: Sequence[int]) -> list[tuple[Layers, Role]]:
    """Return the layers between the cuts with their roles, or the whole model if there is no cut."""
    if not cuts:
        return [(Layers(0, n_layers), Role.WHOLE)]
    pairs = [Layers(first, last) for first, last in pairwise((0, *cuts, n_layers))]
    roles = [Role.FIRST, *[Role.MIDDLE] * (len(pairs) - 2), Role.LAST]
    return list(zip(pairs, roles, strict=True))


def usual_cuts(n_layers: int) -> list[tuple[int, ...]]:
    """Return five ways to cut a model into two, three or four stages, in the middle and near the ends."""
    half, third, quarter = n_layers // 2, n_layers // 3, n_layers // 4
    places = [(1,), (half,), (1, n_layers - 1), (third, 2 * third), (quarter, half, n_layers - quarter)]
    return [cuts for cuts in places if len(set(cuts)) == len(cuts)]


def measure(path: Path, text: str, n_tokens: int, threads: int) -> tuple[str, bool]:
    """Return the table of one model, and whether it meets all limits."""
    with tempfile.TemporaryDirectory(prefix="poolhouse-wire-") as folder:
        begun = time.monotonic()
        judge = Judge(path, Path(folder), text, n_tokens, threads)
        model = judge.entry.model
        say(f"{path.name}: {len(judge.ids)} tokens, whole in {time.monotonic() - begun:.0f} s")
        rows, holds = list[list[str]](), True
        noise = Divergence(0.0, 0.0, 1.0, 0.0)
        for way in NOISE:
            divergence = judge.of(way)
            if divergence.mean_kl > noise.mean_kl:
                noise = divergence
            label = f"chunks of {way.chunk}" + ("" if way.flash else ", no flash attention")
            rows.append(_row("whole", label, divergence, "–"))
            say(f"{path.name} whole, {label}: mean KL {divergence.mean_kl:.2e}, top-1 {divergence.top1:.2%}")
        for cuts in usual_cuts(model.n_layers):
            split = ", ".join(str(len(layers)) for layers, _ in runs(model.n_layers, cuts))
            numbers = (NumberFormat.F32, NumberFormat.F16, NumberFormat.Q8)
            for number, divergence in zip(numbers, judge.each(cuts, numbers), strict=True):
                fits = _fits(number, divergence, noise, model.width)
                holds &= bool(fits)
                rows.append(_row(split, number.name.lower(), divergence, fits or "NO"))
                say(f"{path.name} {split} {number.name}: mean KL {divergence.mean_kl:.2e}, top-1 {divergence.top1:.2%}")
    sizes = ", ".join(
        f"{number.name.lower()} {number.row_bytes(model.width) / model.width:.3f}"
        for number in (NumberFormat.F32, *BARS)
    )
    head = ["layers of each stage", "wire", "mean KL", "99.9th percentile", "top-1", "largest Δ logit", "holds"]
    words = f"### {path.name}\n\n{len(judge.ids)} tokens, width {model.width}. Bytes a value: {sizes}.\n\n"
    return words + report.table(head, rows), holds


def _fits(number: NumberFormat, divergence: Divergence, noise: Divergence, width: int) -> str:
    """Return the criterion by which a wire type is good enough, or "" if it is not."""
    if number is NumberFormat.F32:
        return "exact" if divergence.largest == 0.0 else ""
    mean_kl, top1, value_bytes = BARS[number]
    if number.row_bytes(width) / width > value_bytes:
        return ""
    if divergence.mean_kl <= mean_kl and divergence.top1 >= top1:
        return "bar"
    within = divergence.mean_kl <= 2 * noise.mean_kl and 1 - divergence.top1 <= 2 * (1 - noise.top1)
    return "twice the noise" if within else ""


def _row(split: str, wire: str, divergence: Divergence, holds: str) -> list[str]:
    return [
        split,
        wire,
        f"{divergence.mean_kl:.2e}",
        f"{divergence.p999_kl:.2e}",
        f"{divergence.top1:.2%}",
        f"{divergence.largest:.3g}",
        holds,
    ]


def unrounded(path: Path, folder: Path) -> Path:
    """Write the model with 32-bit weights, using the engine's own tools. Raises ChildFailed."""
    llama, made = binding.load(), folder / f"{path.stem}.f32.gguf"
    how = llama.llama_model_quantize_default_params()
    how.ftype, how.allow_requantize = 0, True  # LLAMA_FTYPE_ALL_F32
    if llama.llama_model_quantize(os.fsencode(path), os.fsencode(made), how):
        raise ChildFailed(f"the engine cannot write {path.name} in 32 bits")
    return made


def main(arguments: Sequence[str]) -> int:
    """Measure each model and print its table. With --write, also write it to a file. Return 1 if a limit is not met."""
    parser = argparse.ArgumentParser(prog="python -m bench wire-quality", description=__doc__)
    parser.add_argument("models", nargs="*", type=Path, help="GGUF files; else those of `make real`")
    parser.add_argument("--tokens", type=int, default=TOKENS)
    parser.add_argument("--text", type=Path, help=f"a file; else {', '.join(TEXTS)}")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--unrounded",
        action="store_true",
        help="with the weights as 32-bit numbers (4 bytes each, in a folder for now)",
    )
    parser.add_argument("--write", type=Path, help="a Markdown file for the tables")
    options = parser.parse_args(arguments)
    models = options.models or [real_models.folder() / model.file for model in real_models.MODELS]
    if away := [path for path in models if not path.exists()]:
        parser.error(f"{away[0]} is not there; `make real` fetches the two public models")
    files = [options.text] if options.text else [PROJECT / name for name in TEXTS]
    text = "\n\n".join(file.read_text("utf-8") for file in files)
    tables, all_hold = list[str](), True
    for path in models:
        with tempfile.TemporaryDirectory(prefix="poolhouse-unrounded-") as folder:
            file = unrounded(path.resolve(), Path(folder)) if options.unrounded else path.resolve()
            table, holds = measure(file, text, options.tokens, options.threads)
        tables.append(table)
        all_hold &= holds
    words = "\n".join(tables)
    print(words)
    if options.write:
        bars = "; ".join(
            f"{number.name.lower()}: mean KL at most {kl:g}, top-1 at least {top1:.1%}, {size:g} bytes a value"
            for number, (kl, top1, size) in BARS.items()
        )
        options.write.write_text(
            f"# {TITLE}\n\n{__doc__.strip()}\n\nBars: {bars}; f32: no difference.\n\n{words}", "utf-8"
        )
    return 0 if all_hold else 1
