"""The speed of a single answer with and without speculative decoding, on repetitive and other texts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bench import report
from bench.children import Place
from bench.figures import Summary, summary
from bench.job import Bench, say
from bench.node_client import Control
from bench.pool_side import PoolSide
from bench.rounds import Questions
from guide.kv import questions as guide_questions

TITLE = "Guessed tokens, off and on"
GUIDE, GUIDE_SPLIT = "guide", (1, 6, 1)
GUIDE_OUTPUT = 200  # most answers of the Guide are shorter
PER_ROUND = 6  # questions to the Guide, one after another
CHANCE = {"temperature": 3.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
GREEDY = {"temperature": 0.0}
STUCK = GREEDY | {"logit_bias": [[1000, 1000.0]]}  # repeats one token forever

Json = dict[str, Any]


@dataclass(slots=True)
class Text:
    """The speed on one kind of text in each round, without and with speculation."""

    words: str
    off: list[float] = field(default_factory=list)  # tokens per second
    on: list[float] = field(default_factory=list)
    tokens: int = 0
    guessed: int = 0
    right: int = 0
    same: bool = True  # whether speculation changed no answer

    @property
    def ratio(self) -> Summary:
        return summary([on / off for on, off in zip(self.on, self.off, strict=True)])

    def row(self) -> list[str]:
        off, on, ratio = summary(self.off), summary(self.on), self.ratio
        return [
            self.words,
            f"{off.median:.1f}",
            f"{on.median:.1f}",
            f"{ratio.median:.3f} ({ratio.low:.3f}–{ratio.high:.3f}, {ratio.n_runs})",
            f"{self.guessed} of {self.tokens}",
            f"{self.right / self.guessed:.0%}" if self.guessed else "–",
            "yes" if self.same else "NO",
        ]


def guesses(bench: Bench) -> None:
    """Compare the speeds.

    The Guide writes the text: random weights would repeat either nothing or the same token forever.
    """
    options = bench.options
    places = [Place(cpus=(core,)) for core in options.cores]
    questions = Questions(options.seed, bench.model.n_vocab)
    with bench.family() as family:
        side = PoolSide(family, options, places, bench.homes / "guesses", bench.model.n_layers)
        control = side.host.control
        side.use(side.settings()[0])
        chance, stuck = Text("random weights, by chance"), Text("random weights, stuck")
        _both(control, [_random(questions, "warm", options.output // 4, GREEDY, 1)], 0, Text(""))
        for n in range(options.runs):
            for text, how in ((chance, CHANCE), (stuck, STUCK)):
                order = _random(questions, f"guesses {n}", options.output, how, n)
                _both(control, [order | {"model": side.model}], n, text)
                say(f"guesses, round {n + 1}: {', '.join(text.row())}")
        real = Text("the Guide's answers to its questions")
        control.finish("/load", {"model": GUIDE, "split": list(GUIDE_SPLIT)})
        known = guide_questions()
        for n in range(options.runs):
            some = [known[(n * PER_ROUND + k) % len(known)] for k in range(PER_ROUND)]
            _both(control, [_guide(prompt) for prompt in some], n, real)
            say(f"guesses, round {n + 1}: {', '.join(real.row())}")
    texts = [chance, stuck, real]
    head = ["text", "off, tok/s", "on, tok/s", "on to off", "guessed", "right", "same answers"]
    note = (
        f"One answer at a time on {len(places)} machines, {options.runs} rounds of off and on in turns "
        "(median; lowest–highest, rounds). By chance random weights never repeat themselves: what guesses cost. "
        "Stuck, they say one token for ever: the most that guesses can give. Real text lies between.\n"
    )
    table = report.table(head, [text.row() for text in texts])
    bench.add("guesses", {"texts": texts}, f"## {TITLE}\n\n{note}\n{table}")


def _random(questions: Questions, label: str, n_out: int, how: Json, seed: int) -> Json:
    return {
        "prompt_ids": list(questions.prompts(label, 1, 128)[0]),
        "max_tokens": n_out,
        "ignore_end": True,
        "sampling": how | {"seed": seed},
    }


def _guide(prompt: str) -> Json:
    return {"prompt": prompt, "model": GUIDE, "max_tokens": GUIDE_OUTPUT, "sampling": GREEDY}


def _both(control: Control, orders: list[Json], n: int, text: Text) -> None:
    """Answer all requests without and with speculation, in an order that alternates between rounds."""
    answers_by: dict[bool, list[Json]] = {}
    for guess in (False, True) if n % 2 == 0 else (True, False):
        answers_by[guess] = [control.finish("/ask", order | {"guesses": guess}) for order in orders]
    text.off.append(_rate(answers_by[False]))
    text.on.append(_rate(answers_by[True]))
    text.tokens += sum(len(answer["token_ids"]) for answer in answers_by[True])
    text.guessed += sum(answer["guessed"] for answer in answers_by[True])
    text.right += sum(answer["guessed_right"] for answer in answers_by[True])
    text.same &= [a["token_ids"] for a in answers_by[False]] == [b["token_ids"] for b in answers_by[True]]


def _rate(answers: list[Json]) -> float:
    """Return the tokens per second of all answers, without the time to their first tokens."""
    later = [(len(answer["token_ids"]) - 1, answer["decode_tok_s"]) for answer in answers]
    spent = sum(n / rate for n, rate in later if n > 0 and rate)
    return sum(n for n, rate in later if n > 0 and rate) / spent if spent else 0.0
