"""`python -m bench [PART ...]` runs benchmarks and writes a report; `python -m bench wire-quality` is separate."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from bench import report
from bench.bars import BARS, compare
from bench.children import ChildFailed, Place
from bench.job import Bench, say
from bench.machine import model_facts, surroundings
from bench.node_client import NodeRefused
from bench.options import BUILD, SIDES, Options, parse
from bench.parts.api import api
from bench.parts.chat import chat
from bench.parts.cluster_map import cluster_map
from bench.parts.cpu_thirds import three
from bench.parts.fault_readiness import steady
from bench.parts.forecasts import forecasts
from bench.parts.idle import idle
from bench.parts.kept import kept
from bench.parts.members import members
from bench.parts.placements import placements
from bench.parts.planner import planner
from bench.parts.replicas import replicas
from bench.parts.speculation import speculation
from bench.parts.ten_nodes import ten
from bench.parts.threads import threads
from bench.parts.time_profile import profile
from bench.parts.transfer import transfer
from bench.parts.window import window
from bench.pool_side import PoolSide
from bench.rounds import Questions, Tuned, side_by_side, tune
from bench.sides import EngineSide, RpcSide, Side

BUSY_LOAD = 0.5  # average number of processes that computed or waited for a core during the last minute


def side_parts(bench: Bench) -> None:
    """Compare the requested sides: the whole model on one machine, llama.cpp RPC, and the pool."""
    options, places = bench.options, [Place(cpus=(core,)) for core in bench.options.cores]
    with bench.family() as family:
        makers: dict[str, Callable[[], Side]] = {
            "whole": lambda: EngineSide("whole", family, options, places[0]),
            "rpc": lambda: RpcSide(family, options, places),
            "pool": lambda: PoolSide(family, options, places, bench.homes, bench.model.n_layers),
        }
        chosen = [makers[name]() for name in options.sides]
        questions = Questions(options.seed, bench.model.n_vocab)
        tuned = bench.tuned
        for side in chosen:
            if side.name not in tuned:
                tuned[side.name] = tune(side, options, questions, say)
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "tuning.json").write_text(json.dumps(tuned, default=asdict, indent=1))
        measured = side_by_side(chosen, tuned, options, questions, say)
    results = compare(BARS, {name: measurement.figures() for name, measurement in measured.items()})
    text = report.sides_markdown("Side by side", measured, tuned, results)
    data = {"measured": measured, "tuned": tuned, "bars": results}
    bench.add("sides", data | {"agreement": report.agreements(measured)}, text)


def known(options: Options) -> dict[str, Tuned]:
    """Return the tuned settings of an earlier run, if the options name its file."""
    if not options.tuned:
        return {}
    tuning = json.loads(options.tuned.read_text())
    return {name: Tuned(**each) for name, each in tuning.items()}


def chosen_parts(options: Options) -> dict[str, Callable[[Bench], None]]:
    """Return the requested parts. The comparison of sides runs first, because the profile uses its tuned settings."""
    parts: dict[str, Callable[[Bench], None]] = {
        "three": three,
        "transfer": transfer,
        "idle": idle,
        "profile": profile,
        "planner": planner,
        "placements": placements,
        "speculation": speculation,
        "threads": threads,
        "forecasts": forecasts,
        "replicas": replicas,
        "steady": steady,
        "ten": ten,
        "window": window,
        "chat": chat,
        "map": cluster_map,
        "api": api,
        "members": members,
        "kept": kept,
    }
    chosen = {name: part for name, part in parts.items() if name in options.parts}
    return {"side by side": side_parts, **chosen} if options.sides else chosen


def ensure_model(options: Options) -> None:
    if options.model.exists():
        return
    say(f"making {options.model}")
    options.model.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-m", "bench.make_model", str(options.model)], check=True)


def others_compute() -> str:
    """Return a warning if other programs kept the processor busy during the last minute, or ""."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load < BUSY_LOAD:
        return ""
    return f"other programs compute here (load {load:.1f}): end them, or the figures say little"


@contextlib.contextmanager
def homes(keep: bool) -> Iterator[Path]:
    """Yield a temporary folder for the home folders of nodes. It is kept afterwards if `keep` is set."""
    BUILD.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="homes-", dir=BUILD.resolve()))
    try:
        yield folder
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def run(options: Options) -> int:
    if options.parts == SIDES:
        say("the comparison alone, in five to ten minutes; all parts, in hours: make bench ARGS=all")
    ensure_model(options)
    model = model_facts(options.model)
    if busy := others_compute():
        say(busy)
    facts = surroundings(model) | {"busy": busy or "no", "options": {k: str(v) for k, v in asdict(options).items()}}
    with homes(options.keep) as folder:
        bench = Bench(options, model, facts, folder, tuned=known(options))
        for name, part in chosen_parts(options).items():
            try:
                part(bench)
            except (ChildFailed, NodeRefused) as failure:
                bench.failed(name, str(failure))
    say("\n".join(["", *bench.texts]))
    say(f"report: {options.out / 'report.md'}")
    return 1 if bench.failures else 0


def main() -> int:
    if sys.argv[1:2] == ["wire-quality"]:  # a separate command without nodes or sides
        from bench import wire_quality

        return wire_quality.main(sys.argv[2:])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = parse()
    # Our workers ask Linux for huge pages (backends/worker/process_resources.py), so the baselines get them as well.
    os.environ.setdefault("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(options.cores))
    try:
        return run(options)
    except KeyboardInterrupt:
        say("bench: stopped; every child was ended")
        return 130


if __name__ == "__main__":
    sys.exit(main())
