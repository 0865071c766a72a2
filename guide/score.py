"""Asks the Guide the 30 most frequent questions and 60 other wordings, and grades the answers with key.toml. Then asks
the questions of strangers.toml, and counts what it refuses."""

import argparse
import json
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from guide.dataset import HERE, UNKNOWN, checks, lines, load_fresh, load_topics

MODEL = HERE.parent / "resources" / "guide.gguf"
OTHERS_BAR = 0.8  # for the other wordings; the 30 frequent questions must all be right
MAX_TOKENS = 160
REFUSAL = "I don't know that"  # how every answer to an unknown question begins
REFUSED_BAR = 0.7  # least share of unknown questions that are refused; the goal is 0.9
REFUSED_OWN_BAR = 0.06  # greatest share of questions on its own topics that are refused; the goal is 0.05

Ask = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Mark:
    """The requirements for an answer on a topic: it contains a phrase from each of `needs`, and none from `never`."""

    topic: str
    question: str
    rewordings: tuple[str, ...]
    needs: tuple[tuple[str, ...], ...]
    never: tuple[str, ...]

    def passes(self, answer: str) -> bool:
        """Return whether an answer meets the requirements."""
        said = " ".join(answer.lower().split())
        return all(any(phrase in said for phrase in some) for some in self.needs) and not any(
            phrase in said for phrase in self.never
        )


@dataclass(frozen=True, slots=True)
class Result:
    """A question with its graded answer."""

    topic: str
    question: str
    other_wording: bool
    passed: bool
    answer: str


def load_key() -> list[Mark]:
    """Return the requirements for all topics."""
    entries = tomllib.loads((HERE / "key.toml").read_text("utf-8"))["topic"]
    return [
        Mark(e["name"], e["question"], tuple(e["rewordings"]), tuple(map(tuple, e["needs"])), tuple(e["never"]))
        for e in entries
    ]


def leaks(key: Sequence[Mark], answers: dict[str, str]) -> list[tuple[str, str]]:
    """Return the pairs (topic, other topic) for which the answer to the other topic passes.

    There should be none.
    """
    return [
        (mark.topic, name)
        for mark in key
        for name, answer in answers.items()
        if name != mark.topic and mark.passes(answer)
    ]


def canonical() -> dict[str, str]:
    """Return the answer to each topic in the training text."""
    return {topic.name: topic.answer for topic in load_topics()}


def score(key: Sequence[Mark], ask: Ask) -> list[Result]:
    """Ask all questions of the key and grade the answers."""
    results = []
    for mark in key:
        for question in (mark.question, *mark.rewordings):
            answer = ask(question)
            results.append(Result(mark.topic, question, question != mark.question, mark.passes(answer), answer))
    return results


def totals(results: Sequence[Result]) -> dict[str, Any]:
    """Return how many answers passed, and whether that is enough."""
    passed = [result.passed for result in results if not result.other_wording]
    passed_rewordings = [result.passed for result in results if result.other_wording]
    met = all(passed) and sum(passed_rewordings) >= OTHERS_BAR * len(passed_rewordings)
    return {
        "asked": sum(passed),
        "of_asked": len(passed),
        "others": sum(passed_rewordings),
        "of_others": len(passed_rewordings),
        "met": met,
    }


@dataclass(frozen=True, slots=True)
class Strangers:
    """The questions of strangers.toml: those that the Guide cannot know, and those on its topics."""

    unknown: tuple[str, ...]
    known: tuple[tuple[str, str], ...]  # topic and question


@dataclass(frozen=True, slots=True)
class Refusals:
    """The questions of strangers that the Guide answered or refused wrongly, and their numbers."""

    answered_unknown: tuple[tuple[str, str], ...]  # questions that it should have refused, with its answers
    refused_known: tuple[str, ...]  # questions on its topics that it refused
    n_unknown: int
    n_known: int
    n_right: int  # questions on its topics that were answered word for word

    @property
    def met(self) -> bool:
        """Return whether enough unknown questions were refused, and few enough of its own."""
        refused = self.n_unknown - len(self.answered_unknown)
        return refused >= REFUSED_BAR * self.n_unknown and len(self.refused_known) <= REFUSED_OWN_BAR * self.n_known


def load_strangers() -> Strangers:
    """Return the questions of strangers.toml."""
    text = tomllib.loads((HERE / "strangers.toml").read_text("utf-8"))
    pairs = [line.partition(": ") for line in lines(text["known"])]
    return Strangers(lines(text["unknown"]), tuple((topic, question) for topic, _, question in pairs))


def refusals(strangers: Strangers, results: Sequence[Result], ask: Ask) -> Refusals:
    """Ask the questions of strangers. The graded questions of the key count as its own too."""
    answers = canonical()
    unknown = [(question, ask(question)) for question in strangers.unknown]
    known = [(topic, question, ask(question)) for topic, question in strangers.known]
    own = [*((result.question, result.answer) for result in results), *((q, answer) for _, q, answer in known)]
    return Refusals(
        answered_unknown=tuple(pair for pair in unknown if not pair[1].startswith(REFUSAL)),
        refused_known=tuple(question for question, answer in own if answer.startswith(REFUSAL)),
        n_unknown=len(unknown),
        n_known=len(own),
        n_right=sum(answer.strip() == answers[topic] for topic, _, answer in known),
    )


def open_guide(path: Path, threads: int = 1) -> Ask:
    """Return a function that asks the model a question. It decodes greedily and uses the model's own chat template."""
    from backends.llamacpp import binding

    llama = binding.llama_class()(str(path), n_ctx=512, n_threads=threads, n_threads_batch=threads, verbose=False)

    def ask(question: str) -> str:
        messages = [{"role": "user", "content": question}]
        reply: Any = llama.create_chat_completion(messages, temperature=0.0, max_tokens=MAX_TOKENS)  # type: ignore[arg-type]
        return str(reply["choices"][0]["message"]["content"])

    return ask


def show(results: Sequence[Result], sums: dict[str, Any]) -> None:
    """Print a line for each question, with the answer if it failed, and then the totals."""
    for result in results:
        print(f"{'pass' if result.passed else 'FAIL'}  {result.topic:<14} {result.question}")
        if not result.passed:
            print(f"      said: {result.answer}")
    print(f"asked {sums['asked']}/{sums['of_asked']}, other wordings {sums['others']}/{sums['of_others']}")


def show_refusals(refused: Refusals, n_strangers: int) -> None:
    """Print the questions that were wrongly answered or wrongly refused, and then the totals."""
    for question, answer in refused.answered_unknown:
        print(f"ANSWERED  {question}\n      said: {answer}")
    for question in refused.refused_known:
        print(f"REFUSED   {question}")
    n_refused = refused.n_unknown - len(refused.answered_unknown)
    print(
        f"unknown questions refused {n_refused}/{refused.n_unknown}, "
        f"own questions refused {len(refused.refused_known)}/{refused.n_known}, "
        f"strangers' questions answered word for word {refused.n_right}/{n_strangers}"
    )


def steer(ask: Ask) -> int:
    """Print how many questions of fresh.toml and validation wordings are refused. Training is steered by them."""
    fresh = [ask(question) for question in load_fresh()]
    own = [(turn.answer, ask(turn.question)) for name, turn in checks(load_topics()) if name not in UNKNOWN]
    print(
        f"fresh unknown questions refused {sum(said.startswith(REFUSAL) for said in fresh)}/{len(fresh)}, "
        f"validation wordings refused {sum(said.startswith(REFUSAL) for _, said in own)}/{len(own)}, "
        f"answered word for word {sum(said.strip() == answer for answer, said in own)}/{len(own)}"
    )
    return 0


def main() -> int:
    """Run the command line. Return 1 if too few answers pass, and 2 if the key itself has an error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, nargs="?", default=MODEL)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--steer", action="store_true", help="ask only fresh.toml and the validation wordings")
    options = parser.parse_args()
    if options.steer:
        return steer(open_guide(options.model, options.threads))
    key = load_key()
    if leaked := leaks(key, canonical()):
        print(f"The key takes wrong topics' answers: {leaked}", file=sys.stderr)
        return 2
    ask, strangers = open_guide(options.model, options.threads), load_strangers()
    results = score(key, ask)
    sums, refused = totals(results), refusals(strangers, results, ask)
    met = sums["met"] and refused.met
    if options.json:
        print(json.dumps({**sums, "results": [asdict(result) for result in results], "refusals": asdict(refused)}))
    else:
        show(results, sums)
        show_refusals(refused, len(strangers.known))
        print("The bar is met." if met else "The bar is not met.")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
