"""The command-line options of the benchmark."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

SIDES = ("whole", "rpc", "pool")
PARTS = (
    *SIDES,
    "three",
    "transfer",
    "idle",
    "profile",
    "planner",
    "placements",
    "speculation",
    "threads",
    "forecasts",
    "replicas",
    "steady",
    "ten",
    "window",
    "chat",
    "map",
    "api",
    "members",
    "kept",
)
ALL = "all"  # stands for the names of all parts
# Defaults of a run without parts, which only compares and takes a few minutes.
SHORT = {"runs": 3, "prompt": 256, "output": 48, "streams": 4, "many_prompt": 64, "many_output": 32}
FULL = {"runs": 5, "prompt": 512, "output": 256, "streams": 8}
UBATCHES = {True: (128, 512), False: (64, 128, 256, 512)}  # by whether the run is the short one
BUILD = Path("build") / "bench"
MODEL = BUILD / "bench-0.75b-Q4_K_M.gguf"


@dataclass(frozen=True, slots=True)
class Options:
    """The parsed command line. Sizes are in tokens."""

    parts: tuple[str, ...]
    model: Path
    out: Path
    runs: int
    prompt: int
    output: int
    streams: int
    many_prompt: int
    many_output: int
    ubatches: tuple[int, ...]
    shares: tuple[str, ...]
    splits: tuple[tuple[int, ...], ...]
    number: str
    seed: int
    cores: tuple[int, ...]
    quota: float
    lend: str
    rate_mbit: int
    idle_seconds: float
    api_seconds: float
    tuned: Path | None
    draft: Path | None
    keep: bool

    @property
    def sides(self) -> tuple[str, ...]:
        return tuple(side for side in SIDES if side in self.parts)


def numbers(text: str) -> tuple[int, ...]:
    """Parse a comma-separated list of numbers, such as `4,8,4`. Raises ValueError."""
    values = tuple(int(part) for part in text.split(","))
    if any(n < 0 for n in values):
        raise ValueError(f"negative number in {text}")
    return values


def own_cores() -> tuple[int, ...]:
    """Return the cores on which this process may run, or all cores if the system does not report that."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    p.add_argument(
        "parts",
        nargs="*",
        help=f"any of: {', '.join(PARTS)}; or {ALL} (hours); none: {', '.join(SIDES)}, in a short comparison",
    )
    p.add_argument("--model", type=Path, default=MODEL, help="a GGUF file; made when missing")
    p.add_argument("--out", type=Path, default=BUILD / "report", help="folder of the report")
    p.add_argument("--runs", type=int)
    p.add_argument("--prompt", type=int, help="tokens of the prompt")
    p.add_argument("--output", type=int, help="tokens of the answer")
    p.add_argument("--streams", type=int, help="answers at once; 0: leave that out")
    p.add_argument("--many-prompt", type=int, help="prompt of each of several streams")
    p.add_argument("--many-output", type=int, help="answer of each of several streams")
    p.add_argument("--ubatch", type=int, action="append", help="tried by the baselines")
    p.add_argument("--shares", action="append", help="RPC tensor split tried, e.g. 1,1")
    p.add_argument("--split", type=numbers, action="append", help="tried by the pool, e.g. 4,8,4")
    p.add_argument("--number", choices=("f16", "f32", "q8"), default="f16")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--cores", type=numbers, default=own_cores()[:2], help="one a machine")
    p.add_argument("--quota", type=float, default=2 / 3, help="cores of each of three machines")
    p.add_argument("--lend", default="4GiB", help="what each lender lends")
    p.add_argument("--rate-mbit", type=int, default=1000, help="link of the transfer part")
    p.add_argument("--idle-seconds", type=float, default=60.0)
    p.add_argument("--api-seconds", type=float, default=120.0, help="of the 64 clients")
    p.add_argument("--tuned", type=Path, help="tuning.json of an earlier run, instead of tuning")
    p.add_argument("--draft", type=Path, help="a draft model for the speculation part; a GGUF file")
    p.add_argument("--keep", action="store_true", help="keep the nodes' homes")
    return p


def parse(arguments: list[str] | None = None) -> Options:
    args = parser().parse_args(arguments)
    unknown = set(args.parts) - {*PARTS, ALL}
    if unknown:
        parser().error(f"no such part: {', '.join(sorted(unknown))}")
    short = not args.parts
    for name, value in (SHORT if short else FULL).items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    return Options(
        parts=SIDES if short else PARTS if ALL in args.parts else tuple(args.parts),
        model=args.model.resolve(),
        out=args.out.resolve(),
        runs=args.runs,
        prompt=args.prompt,
        output=args.output,
        streams=args.streams,
        many_prompt=args.many_prompt or args.prompt,
        many_output=args.many_output or args.output,
        ubatches=tuple(args.ubatch or UBATCHES[short]),
        shares=tuple(args.shares or ("1,1",)),
        splits=tuple(args.split or ()),
        number=args.number,
        seed=args.seed,
        cores=args.cores,
        quota=args.quota,
        lend=args.lend,
        rate_mbit=args.rate_mbit,
        idle_seconds=args.idle_seconds,
        api_seconds=args.api_seconds,
        tuned=args.tuned,
        draft=args.draft.resolve() if args.draft else None,
        keep=args.keep,
    )
