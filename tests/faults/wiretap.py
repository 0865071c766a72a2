"""S10: what passes the cables of a household while it pairs, loads and answers, searched for what nobody may read."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import sys
import threading
from array import array
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults import listeners
from tests.faults.cables import Cabled, space
from tests.faults.household import HOST, LENDERS, ORDER, Heard, together
from tests.faults.outcome import Outcome

KIND = ("S10", "captured on every cable", "pair, load and answer")
ALL_PROTOCOLS = 0x0003  # linux/if_ether.h
SECRET = "The zanzibar cupboard is opened by quetzalcoatl. How do I add a computer?"
WORDS = ("zanzibar", "quetzalcoatl", "cupboard")
MARK = b"seen by whoever listens on this cable"  # sent in plain: a tap that misses it proves nothing
N_TOKENS, N_PROMPT_IDS = 48, 24
FIRST_ID, ID_END = 300, 2000  # ids that every vocabulary here has, and none that is a sign
WINDOW = 4  # ids in a row: fewer are met by chance
ANSWER_CHARACTERS = 16
LEAST_BYTES = 100_000  # of hidden states alone: fewer, and nothing was captured
PATIENCE_SECONDS = 0.3  # for the last packets
DISCARD_PORT = 9


@dataclass
class Tapped(Cabled):
    """Each cable is listened to before anybody is paired, until `run` has ended."""

    packets: list[bytes] = field(default_factory=list)
    taps: ExitStack = field(default_factory=ExitStack)

    def start(self, name: str) -> None:
        if name not in self.nodes and name == HOST:  # the cables are laid, and nobody speaks
            self.taps.enter_context(_tapped(self.packets))
            self.stack.callback(self.taps.close)
        super().start(name)


async def alone(folder: Path) -> Outcome:
    """Do the same as `run`, in a separate household."""
    with together(folder, Tapped) as home:
        assert isinstance(home, Tapped)
        return await run(home)


async def run(home: Tapped) -> Outcome:
    """Capture the traffic from pairing on: one load, and answers to a text and to token IDs. Once per household."""
    await home.whole()
    about = {"max_tokens": N_TOKENS}
    heard = await home.ask(lambda: None, lambda _: False, ORDER | about | {"prompt": SECRET})
    ids = random.sample(range(FIRST_ID, ID_END), N_PROMPT_IDS)
    order = {key: value for key, value in ORDER.items() if key not in ("prompt", "raw")}
    more = await home.ask(lambda: None, lambda _: False, order | about | {"prompt_ids": ids})
    for name in LENDERS:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:
            plain.sendto(MARK + name.encode(), (f"{home.net(name)}.2", DISCARD_PORT))
    await asyncio.sleep(PATIENCE_SECONDS)
    home.taps.close()
    everything = b"".join(home.packets)
    home.packets.clear()
    why = _ended(heard) or _ended(more) or judged(everything, _text(heard) + _text(more), ids)
    why = why or listeners.unexpected(home.nodes.values())
    facts = {"captured_bytes": float(len(everything))}
    return Outcome(*KIND, not why, why, in_time=not why, facts=facts)


def judged(captured: bytes, answers: str, ids: list[int]) -> str:
    """Return what is wrong with the capture: too little of it, or something in plain text."""
    missed = [name for name in LENDERS if MARK + name.encode() not in captured]
    if missed:
        return f"what was sent in plain was not captured: {', '.join(missed)}"
    if len(captured) < LEAST_BYTES or b"\x17\x03\x03" not in captured:
        return f"only {len(captured)} bytes were captured"
    fromkeys = dict.fromkeys(name for name, needle in needles(answers, ids) if needle in captured)
    return f"in plain: {', '.join(fromkeys)}" if fromkeys else ""


def needles(answers: str, ids: list[int]) -> Iterator[tuple[str, bytes]]:
    """Return the questions and answers as text and as token IDs, and what would show anything in plain text."""
    for word in WORDS:
        for code in ("utf-8", "utf-16-le", "utf-16-be"):
            yield word, word.encode(code)
    for at in range(0, len(answers) - ANSWER_CHARACTERS + 1, ANSWER_CHARACTERS):
        yield "an answer", answers[at : at + ANSWER_CHARACTERS].encode()
    for at in range(len(ids) - WINDOW + 1):
        few = ids[at : at + WINDOW]
        for kind in "HIQ":
            numbers = array(kind, few)
            yield "token ids", numbers.tobytes()
            numbers.byteswap()
            yield "token ids", numbers.tobytes()
        yield "token ids", json.dumps(few)[1:-1].encode()
        yield "token ids", json.dumps(few, separators=(",", ":"))[1:-1].encode()
    yield "a control message", b'"type":"'
    yield "a tensor's name", b"blk.0.attn"
    yield "a model file", b"general.architecture"


def _ended(heard: Heard) -> str:
    return "" if heard.done else heard.error or "no end"


def _text(heard: Heard) -> str:
    return str((heard.done or {}).get("text") or "")


@contextmanager
def _tapped(to: list[bytes]) -> Iterator[None]:
    """Whatever passes our ends of the cables. In a thread: a household begins without a loop."""
    assert sys.platform == "linux"
    over = threading.Event()
    with ExitStack() as stack:
        for name in LENDERS:
            tap = stack.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ALL_PROTOCOLS)))
            tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
            tap.bind((f"to-{space(name)}"[:15], ALL_PROTOCOLS))
            tap.settimeout(0.1)
            taking = threading.Thread(target=_take, args=(tap, to, over), daemon=True)
            taking.start()
            stack.callback(taking.join)
        stack.callback(over.set)
        yield


def _take(tap: socket.socket, to: list[bytes], over: threading.Event) -> None:
    while not over.is_set():
        try:
            to.append(tap.recv(1 << 17))
        except TimeoutError:
            continue
