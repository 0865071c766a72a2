"""The transfer of layers to a lender: only its own layers, at the speed of the link, and only once."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

from bench import report
from bench.children import ROOT, ChildFailed, Place
from bench.job import Bench, say
from bench.pool_side import Node, await_member, default_splits
from bench.shaped_link import HERE, Link, NoLink, busy_rate, limited_link, sampled

TITLE = "Weights over a limited link"
PAIRING_SECONDS = 60.0


def transfer(bench: Bench) -> None:
    """Load a model twice over the link, and count the bytes transferred."""
    try:
        with limited_link(bench.options.rate_mbit) as link, bench.family() as family:
            cores = bench.options.cores
            homes, flags = (bench.homes / "transfer", ["--lend", bench.options.lend, "--limit", bench.options.lend])
            here = Place(cpus=cores[:1])
            there = Place(cpus=cores[-1:], netns=link.namespace)
            host = Node(family, "transfer-host", homes / "host", here, flags)
            lender = Node(family, "transfer-lender", homes / "lender", there, flags, talks=False)
            join(host, lender, link.namespace, HERE)
            transfers = loads(bench, host, link)
    except NoLink as reason:
        bench.cannot("transfer", TITLE, str(reason))
        return
    bench.add("transfer", transfers, markdown(transfers))


def join(host: Node, lender: Node, namespace: str, here: str) -> None:
    """Pair the nodes with the command line, which can run in the lender's namespace.

    here: the host's address as seen from there.
    """
    opened = host.control.request("POST", "/pairing", {"role": "use_and_lend"})
    launch = [sys.executable, "-m", "bench.launch", "--netns", namespace, "--"]
    address = f"{here}:{opened['address'].rpartition(':')[2]}"
    command = [sys.executable, "-m", "app", "pair", address, "--code", opened["code"]]
    done = subprocess.run(
        [*launch, *command, "--home", str(lender.home), "--json"],
        check=False, cwd=ROOT, capture_output=True, text=True, timeout=PAIRING_SECONDS,
    )  # fmt: skip
    if done.returncode:
        raise ChildFailed(f"{lender.name} could not pair: {done.stderr.strip()}")
    await_member(host, lender)


def loads(bench: Bench, host: Node, link: Link) -> dict[str, Any]:
    """Return the figures of both loads, and the fraction of the model that the lender stores."""
    body = {"path": str(bench.options.model), "name": None}
    model = host.control.finish("/models", body)["model"]["name"]
    splits = [s for s in bench.options.splits if len(s) == 3]
    split = splits[0] if splits else default_splits(bench.model.n_layers, 1)[0]
    request = {"model": model, "split": list(split)}
    transfers: dict[str, Any] = {
        "split": split,
        "layer_bytes": sum(bench.model.layer_bytes[split[0] : split[0] + split[1]]),
        "link_bytes_per_second": link.bytes_per_second,
    }
    for ordinal in ("first", "second"):
        started = time.monotonic()
        with sampled(link) as samples:
            loaded = host.control.finish("/load", request)["loaded"]
        transfers[ordinal] = {
            "seconds": time.monotonic() - started,
            "moved_bytes": samples.points[-1][1] - samples.points[0][1],
            "bytes_per_second": busy_rate(samples.points),
            "fetched_bytes": loaded.get("fetched_bytes"),
        }
        say(f"transfer: {ordinal} load {transfers[ordinal]}")
        host.control.request("POST", "/unload", {})
    return transfers


def markdown(transfers: dict[str, Any]) -> str:
    rows = []
    for ordinal in ("first", "second"):
        load = transfers[ordinal]
        share = (load["bytes_per_second"] or 0.0) / transfers["link_bytes_per_second"]
        fetched = "?" if load["fetched_bytes"] is None else f"{load['fetched_bytes'] / 1e6:.2f}"
        rows.append([
            ordinal, f"{load['moved_bytes'] / 1e6:.2f}", f"{load['moved_bytes'] / transfers['layer_bytes']:.3f}",
            fetched, f"{load['seconds']:.1f}", f"{100 * share:.0f} %" if ordinal == "first" else "–",
        ])  # fmt: skip
    head = ["load", "MB on the link", "of the lender's layers", "MB of weights fetched", "s",
            "of the link's speed"]  # fmt: skip
    size = transfers["layer_bytes"] / 1e6
    link = transfers["link_bytes_per_second"] * 8 / 1e9
    intro = f"Split {transfers['split']}: the lender's layers are {size:.1f} MB; the link {link:g} Gb/s."
    return f"## {TITLE}\n\n{intro}\n\n{report.table(head, rows)}"
