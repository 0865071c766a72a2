"""The training text of the Guide: topics from TOML files, with questions varied by a seeded random generator."""

import math
import random
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
TEXT = HERE / "text"
CHOICE = re.compile(r"\(([^()]*\|[^()]*)\)")
SLOT = re.compile(r"\{(\w+)\}")
LETTERS = "abcdefghijklmnopqrstuvwxyz"

TWO_TURNS = 0.12  # share of conversations with two questions
SYSTEM = 0.12  # share of conversations that start with a system message
SMALL_TALK = ("hello", "thanks", "bye", "off-topic")  # drawn more often as the other of two questions
UNKNOWN = ("dont-know", "off-topic")  # questions without an answer, of which there are far more kinds than of others
UNKNOWN_WEIGHT = 5
FOREIGN = 0.35  # share of the questions of the first of these that are another topic's, with its words replaced
NEAR = 0.5  # share of those in which words that many topics have stay, such as "computer" and "model"
COMMON = 10  # how many topics must have a word for it to stay
FOREIGN_SLOTS = ("noun_x", "object_x", "thing_x", "program_x", "object_y", "thing_y", "data_y", "odd_y", "quality_y")
FRAMED = 0.2  # share of the questions that are written in a frame of frames.toml
FIRST = 0.08  # share of questions that are a topic's first pattern, the wording that is asked most


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic with its only answer, and the wordings of its question."""

    name: str
    answer: str
    questions: tuple[str, ...]  # patterns with {slot} and (a|b|)
    check: tuple[str, ...]  # plain wordings kept for validation, never trained on


@dataclass(frozen=True, slots=True)
class Turn:
    """A question and its answer."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """A training example. The loss counts its answers and, with a lower weight, its questions."""

    system: str | None
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Frames:
    """Frames for any question, with what the topics fill them with. The keys are `do` and `about`."""

    frames: dict[str, tuple[str, ...]]
    unknown: dict[str, list[str]]
    known: dict[str, dict[str, list[str]]]  # by topic


@dataclass(frozen=True, slots=True)
class Words:
    """The synonyms, polite phrases and typing errors used to vary questions."""

    slots: dict[str, list[str]]
    before: list[str]
    after: list[str]
    slips: list[tuple[str, str]]
    systems: list[str]
    frame: frozenset[str]  # words that hold a question together, and do not say what it is about


def plain(text: str) -> str:
    """Return the text in lower case without punctuation and spaces.

    Wordings with the same result are considered equal.
    """
    return "".join(c for c in text.lower() if c.isalnum())


def lines(block: str) -> tuple[str, ...]:
    """Return the non-empty lines of a block of text."""
    return tuple(line.strip() for line in block.splitlines() if line.strip())


def load_topics() -> list[Topic]:
    """Return all topics in guide/text, in the order of the file names."""
    return [
        Topic(entry["name"], entry["answer"], lines(entry["questions"]), lines(entry["check"]))
        for path in sorted(TEXT.glob("*.toml"))
        for entry in tomllib.loads(path.read_text("utf-8")).get("topic", [])
    ]


def load_frames() -> Frames:
    """Return the frames in frames.toml."""
    text = tomllib.loads((TEXT / "frames.toml").read_text("utf-8"))
    kinds = ("do", "about")
    return Frames(
        {kind: lines(text["frames"][kind]) for kind in kinds},
        text["unknown"],
        {name: {kind: text[kind].get(name, []) for kind in kinds} for name in {*text["do"], *text["about"]}},
    )


def load_words() -> Words:
    """Return the synonyms in all text files, and the phrases in words.toml."""
    slots: dict[str, list[str]] = {}
    for path in sorted(TEXT.glob("*.toml")):
        slots |= tomllib.loads(path.read_text("utf-8")).get("slots", {})
    words = tomllib.loads((TEXT / "words.toml").read_text("utf-8"))
    system = tomllib.loads((TEXT / "system.toml").read_text("utf-8"))
    phrases = words["phrases"]
    slips = [(right, wrong) for right, wrong in words["typing"]["slips"]]
    return Words(
        slots,
        phrases["before"],
        phrases["after"],
        slips,
        system["messages"],
        frozenset(words["frame"]["words"].split()),
    )


def load_fresh() -> list[str]:
    """Return the unknown questions of fresh.toml, by which training is steered."""
    fresh = tomllib.loads((HERE / "fresh.toml").read_text("utf-8"))
    return [*lines(fresh["about"]), *lines(fresh["world"])]


def held_out() -> list[str]:
    """Return the wordings used for scoring and steering, which must never appear in the training text."""
    key = tomllib.loads((HERE / "key.toml").read_text("utf-8"))
    strangers = tomllib.loads((HERE / "strangers.toml").read_text("utf-8"))
    known = [line.partition(": ")[2] for line in lines(strangers["known"])]
    rewordings = [wording for topic in key["topic"] for wording in topic["rewordings"]]
    return [*rewordings, *known, *lines(strangers["unknown"]), *load_fresh()]


def expand(pattern: str, slots: dict[str, list[str]], rng: random.Random) -> str:
    """Return a random wording that matches a pattern."""
    while match := CHOICE.search(pattern):
        pattern = pattern[: match.start()] + rng.choice(match[1].split("|")) + pattern[match.end() :]
    text = SLOT.sub(lambda slot: rng.choice(slots[slot[1]]), pattern)
    return " ".join(text.split())


def breadth(pattern: str, slots: dict[str, list[str]]) -> float:
    """Return the weight with which to draw a pattern: one, plus one for each doubling of the number of its wordings."""
    bits = 0.0
    while match := CHOICE.search(pattern):
        bits += math.log2(len(match[1].split("|")))
        pattern = pattern[: match.start()] + pattern[match.end() :]
    return 1 + bits + sum(math.log2(len(slots[name])) for name in SLOT.findall(pattern))


def misspell(text: str, rng: random.Random) -> str:
    """Drop, double, swap or replace a letter."""
    if len(text) < 6:
        return text
    at = rng.randrange(1, len(text) - 1)
    kind = rng.randrange(4)
    if kind == 0:
        return text[:at] + text[at + 1 :]
    if kind == 1:
        return text[:at] + text[at] + text[at:]
    if kind == 2:
        return text[: at - 1] + text[at] + text[at - 1] + text[at + 1 :]
    return text[:at] + rng.choice(LETTERS) + text[at + 1 :]


def common(topics: list[Topic], words: Words) -> frozenset[str]:
    """Return the words that the questions of many topics have, and that therefore tell none of them."""
    rng, counts = random.Random(0), Counter[str]()
    for topic in topics:
        if topic.name not in UNKNOWN:
            said = " ".join(expand(pattern, words.slots, rng) for pattern in topic.questions for _ in range(3))
            counts.update({word.strip("?!.,") for word in said.lower().split()})
    return frozenset(word for word, count in counts.items() if count >= COMMON)


class Writer:
    """A seeded generator of an endless sequence of conversations."""

    def __init__(self, topics: list[Topic], words: Words, seed: int) -> None:
        self.topics = topics
        self.words = words
        self.rng = random.Random(seed)
        self.banned = [plain(wording) for wording in held_out()]
        self.weights = [
            (1 + min(len(topic.questions), 48) / 16) * (UNKNOWN_WEIGHT if topic.name in UNKNOWN else 1)
            for topic in topics
        ]
        self.patterns = {topic.name: [breadth(q, words.slots) for q in topic.questions] for topic in topics}
        self.by_name = {topic.name: topic for topic in topics}
        self.frames = load_frames()
        self.common = words.frame | common(topics, words)

    def question(self, topic: Topic) -> str:
        """Return a random wording of a topic's question that contains none of the wordings used for scoring."""
        while True:
            if topic.name == UNKNOWN[0] and self.rng.random() < FOREIGN:
                written = self.foreign()
            elif self.rng.random() < FRAMED and (filled := self.framed(topic)):
                written = filled
            else:
                is_first = self.rng.random() < FIRST
                drawn = self.rng.choices(topic.questions, self.patterns[topic.name])[0]
                written = expand(topic.questions[0] if is_first else drawn, self.words.slots, self.rng)
            text = self.vary(written)
            if text and not any(wording in plain(text) for wording in self.banned):
                return text

    def framed(self, topic: Topic) -> str:
        """Return a frame that is filled with what a topic is about, or "" if frames.toml says nothing of it."""
        parts = self.frames.unknown if topic.name == UNKNOWN[0] else self.frames.known.get(topic.name, {})
        kinds = [kind for kind, texts in parts.items() if texts]
        if not kinds:
            return ""
        kind = self.rng.choice(kinds)
        frame = self.rng.choice(self.frames.frames[kind])
        return expand(frame.replace(f"{{{kind}}}", self.rng.choice(parts[kind])), self.words.slots, self.rng)

    def foreign(self) -> str:
        """Return a question of another topic in which every word that carries meaning is replaced by a foreign one.

        Only such words tell a question that has an answer from one that merely sounds like it. Half of the time words
        that many topics have stay too: they don't say which of them is meant.
        """
        slots, known = [self.words.slots[name] for name in FOREIGN_SLOTS], list[str]()
        kept = self.common if self.rng.random() < NEAR else self.words.frame
        while all(word.lower().strip("?!.,") in kept for word in known):
            topic = self.rng.choice([topic for topic in self.topics if topic.name not in UNKNOWN])
            pattern = self.rng.choices(topic.questions, self.patterns[topic.name])[0]
            known = expand(pattern, self.words.slots, self.rng).split()
        return " ".join(
            word if word.lower().strip("?!.,") in kept else self.rng.choice(self.rng.choice(slots)) for word in known
        )

    def vary(self, text: str) -> str:
        """Vary the case and punctuation of a question, and occasionally add politeness or typing errors."""
        rng, asks = self.rng, len(text.split()) > 2
        if asks and rng.random() < 0.15:
            text = text + rng.choice(self.words.after)
        if asks and rng.random() < 0.2:
            text = rng.choice(self.words.before) + text
        if asks and rng.random() < 0.12:
            kept = [word for word in text.split() if rng.random() > 0.12]
            text = " ".join(kept)
        for right, wrong in self.words.slips if rng.random() < 0.3 else []:
            if rng.random() < 0.3:
                text = re.sub(rf"\b{right}\b", wrong, text)
        if rng.random() < 0.12:
            text = misspell(text, rng)
        return self.style(text)

    def style(self, text: str) -> str:
        """Vary the capitals and the final punctuation, as different people type them."""
        how, rng = self.rng.random(), self.rng
        if how < 0.4:
            text = text.lower()
        elif how < 0.8:
            text = text[:1].upper() + text[1:]
        elif how < 0.83:
            text = text.upper()
        if text[-1:].isalnum():
            text += rng.choice(["?", "?", "?", "", "", "", ".", "!", " ?"])
        elif rng.random() < 0.3:
            text = text.rstrip("?!. ") or text
        return text

    def turn(self, topic: Topic) -> Turn:
        """Return a random question about a topic, with its answer."""
        return Turn(self.question(topic), topic.answer)

    def topic(self) -> Topic:
        """Return a random topic. Topics with more wordings are more likely."""
        return self.rng.choices(self.topics, self.weights)[0]

    def conversation(self) -> Conversation:
        """Return a random conversation. Most consist of a single question and its answer."""
        turns = [self.turn(self.topic())]
        if self.rng.random() < TWO_TURNS:
            name = self.rng.choice(SMALL_TALK) if self.rng.random() < 0.4 else self.topic().name
            other = self.turn(self.by_name[name])
            turns = [other, *turns] if name == "hello" else [*turns, other]
        system = self.rng.choice(self.words.systems) if self.rng.random() < SYSTEM else None
        return Conversation(system, tuple(turns))

    def __iter__(self) -> Iterator[Conversation]:
        while True:
            yield self.conversation()


def checks(topics: list[Topic]) -> list[tuple[str, Turn]]:
    """Return the wordings reserved for validation, each with the name of its topic and its answer."""
    return [(topic.name, Turn(text, topic.answer)) for topic in topics for text in topic.check]
