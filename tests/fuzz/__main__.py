"""`make fuzz`: changed inputs for each parser; those that reach lines in a new order are kept for every test run.

What is found goes into tests/fuzz/corpus, a line of base64 each. It ends with an error when a parser does anything
but read its input or refuse it, or needs longer than a second; that input is kept as well.
"""

from __future__ import annotations

import argparse
import base64
import random
import sys
import time
from types import FrameType
from typing import Any

from tests.fuzz.targets import TARGETS, Target

LONGEST_S = 1.0
MOST_BYTES = 4096
MOST_KEPT = 80  # for each parser
BITS = (0, 1, 0x7F, 0x80, 0xFF)
WORDS = (b"\xff" * 4, b"\0" * 8, b"\xff" * 8, b"{", b"[", b'"', b"\\u0000", b"-1", b"1e999", b"null", b"\xc3\x28")
Arc = tuple[str, int, int]


def arcs_of(target: Target, data: bytes) -> tuple[set[Arc], str]:
    """Return the transitions between lines in a parser's files, and its result for the input."""
    names: set[Arc] = set()
    last = 0

    def lines(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal last
        if event == "line":
            names.add((frame.f_code.co_filename[-40:], last, frame.f_lineno))
            last = frame.f_lineno
        return lines

    def calls(frame: FrameType, _: str, __: Any) -> Any:
        return lines if frame.f_code.co_filename.endswith(target.files) else None

    sys.settrace(calls)
    try:
        outcome = target.outcome(data)
    finally:
        sys.settrace(None)
    return names, outcome


def changed(chance: random.Random, pool: list[bytes]) -> bytes:
    """One of these inputs with a few changes, or two halves of them."""
    data = bytearray(chance.choice(pool))
    for _ in range(chance.choice((1, 1, 2, 4, 8))):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(6):
            case 0 if data:
                data[at % len(data)] ^= 1 << chance.randrange(8)
            case 1 if data:
                data[at % len(data)] = chance.choice(BITS)
            case 2:
                data[at:at] = chance.choice(WORDS)
            case 3:
                del data[at : at + chance.choice((1, 2, 8, 64))]
            case 4:
                other = chance.choice(pool)
                data[at:] = other[chance.randrange(len(other) + 1) :]
            case _:
                data[at:at] = data[at : at + chance.choice((1, 4, 32))]
    return bytes(data[:MOST_BYTES])


def fuzz(target: Target, seconds: float, chance: random.Random) -> tuple[int, str]:
    """Return how many inputs were tried, and the failure of the last one."""
    kept = read(target)
    seen: set[Arc] = set()
    for data in kept:
        seen |= arcs_of(target, data)[0]
    n, ends_at = 0, time.monotonic() + seconds
    while time.monotonic() < ends_at:
        data = changed(chance, kept)
        began, n = time.monotonic(), n + 1
        try:
            arcs, _ = arcs_of(target, data)
        except Exception as error:  # noqa: BLE001  a bug, whatever it is, is what is looked for
            write(target, [*kept, data])
            return n, f"{type(error).__name__}: {error}"
        if time.monotonic() - began > LONGEST_S:
            write(target, [*kept, data])
            return n, f"it took {time.monotonic() - began:.1f} s"
        if not arcs <= seen and len(kept) < MOST_KEPT:
            seen |= arcs
            kept.append(data)
    write(target, kept)
    return n, ""


def read(target: Target) -> list[bytes]:
    """Return the saved inputs and the valid ones."""
    lines = target.corpus.read_text("ascii").splitlines() if target.corpus.exists() else []
    return list(dict.fromkeys([*target.right(), *map(base64.b64decode, lines)]))


def write(target: Target, kept: list[bytes]) -> None:
    lines = [base64.b64encode(data).decode("ascii") for data in kept]
    target.corpus.write_text("".join(f"{line}\n" for line in lines), "ascii")


def main() -> None:
    words = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    words.add_argument("--seconds", type=float, default=60.0, help="for each parser")
    words.add_argument("--only", choices=[target.name for target in TARGETS], action="append")
    words.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    args = words.parse_args()
    print(f"seed {args.seed}", flush=True)
    chance, failed = random.Random(args.seed), False
    for target in TARGETS:
        if args.only and target.name not in args.only:
            continue
        n, why = fuzz(target, args.seconds, chance)
        kept = len(read(target))
        print(f"{target.name}: {n} inputs, {kept} kept. {why or 'All read or refused.'}", flush=True)
        failed = failed or bool(why)
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
