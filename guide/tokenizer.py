"""The Guide's byte-level BPE tokenizer: its training, and the encoding of conversations."""

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
CONVERSATIONS = 30_000  # from which the merges are learned

# ChatML, which llama.cpp also recognizes by name.
TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


@dataclass(frozen=True, slots=True)
class Example:
    """The tokens of a conversation, with the kind of each: 0 for the chat format, 1 for a question, 2 for an answer."""

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
    """Return the text of a conversation. Answers are included only occasionally, as there are few different ones."""
    questions = [turn.question for turn in talk.turns]
    answers = [turn.answer for turn in talk.turns if len(turn.question) % 8 == 0]
    return "\n".join(["user", "assistant", "system", talk.system or "", *questions, *answers])


def load(path: Path) -> Tokenizer:
    """Load a tokenizer saved by `train`."""
    return Tokenizer.from_file(str(path))


def prompt(turns: list[tuple[str, str]]) -> str:
    """Return the text of (role, content) pairs in the chat template's format, up to the beginning of the answer."""
    said = "".join(f"<|im_start|>{role}\n{content}<|im_end|>\n" for role, content in turns)
    return said + "<|im_start|>assistant\n"


def encode(tokenizer: Tokenizer, talk: Conversation) -> Example:
    """Encode a conversation in the chat template's format, with the kind of each token."""
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
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=Path("build/guide"))
    build: Path = parser.parse_args().build
    build.mkdir(parents=True, exist_ok=True)
    tokenizer = train(SEED)
    tokenizer.save(str(build / "tokenizer.json"))
    print(f"{build / 'tokenizer.json'}: {tokenizer.get_vocab_size():,} tokens")


if __name__ == "__main__":
    main()
