"""The Guide's byte-level BPE: how it is trained, and how a conversation becomes tokens."""

import argparse
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from guide.dataset import Conversation, Writer, load_topics, load_words

SEED = 20261
VOCAB_SIZE = 2048
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
PAD, START, END = 0, 1, 2
CONVERSATIONS = 30_000  # how many are read to learn the merges

# ChatML, which llama.cpp knows by name as well.
TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


@dataclass(frozen=True, slots=True)
class Example:
    """Tokens of a conversation; kind: 0 frame, 1 question, 2 answer (what the token at that place is part of)."""

    tokens: list[int]
    kinds: list[int]


def train(seed: int) -> Tokenizer:
    """Learn the merges from generated conversations."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        special_tokens=SPECIAL,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    writer = Writer(load_topics(), load_words(), seed)
    tokenizer.train_from_iterator((words(talk) for talk in islice(writer, CONVERSATIONS)), trainer)
    return tokenizer


def words(talk: Conversation) -> str:
    """The words of a conversation, with each answer once in a while only: there are few of them."""
    questions = [turn.question for turn in talk.turns]
    answers = [turn.answer for turn in talk.turns if len(turn.question) % 8 == 0]
    return "\n".join(["user", "assistant", "system", talk.system or "", *questions, *answers])


def load(path: Path) -> Tokenizer:
    """A tokenizer saved by `train`."""
    return Tokenizer.from_file(str(path))


def prompt(turns: list[tuple[str, str]]) -> str:
    """The text that the chat template makes of (role, content) pairs, ready for the answer."""
    said = "".join(f"<|im_start|>{role}\n{content}<|im_end|>\n" for role, content in turns)
    return said + "<|im_start|>assistant\n"


def encode(tokenizer: Tokenizer, talk: Conversation) -> Example:
    """A conversation in the template's form, with the kind of each token."""
    parts = [(f"<|im_start|>system\n{talk.system}<|im_end|>\n", 0)] if talk.system else []
    for turn in talk.turns:
        parts += [
            ("<|im_start|>user\n", 0),
            (turn.question, 1),
            ("<|im_end|>\n<|im_start|>assistant\n", 0),
            (f"{turn.answer}<|im_end|>", 2),
            ("\n", 0),
        ]
    encoded = [(tokenizer.encode(text).ids, kind) for text, kind in parts]
    tokens = [token for ids, _ in encoded for token in ids]
    return Example(tokens, [kind for ids, kind in encoded for _ in ids])


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=Path("build/guide"))
    build: Path = parser.parse_args().build
    build.mkdir(parents=True, exist_ok=True)
    tokenizer = train(SEED)
    tokenizer.save(str(build / "tokenizer.json"))
    print(f"{build / 'tokenizer.json'}: {tokenizer.get_vocab_size():,} tokens")


if __name__ == "__main__":
    main()
