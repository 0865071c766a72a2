"""Synthetic snapshots of households, with all facts that a real node would report, for tests of the user interfaces."""

from __future__ import annotations

from typing import Any

from app.api.snapshot import Snapshot
from app.decoding import convert

Json = dict[str, Any]
GIB = 1 << 30
KINDS = ("ethernet", "wifi", "ethernet", "thunderbolt", "vpn", "ethernet", "wifi", "virtual", "ethernet")
DEVICES = ("RTX 4090, CUDA", "M3 Max, MLX", "RX 7800 XT", "Intel Core i5, AVX2")
NAMES = (
    "den-pc", "attic-pc", "kitchen-laptop", "studio-mac", "garage-server", "guest-room-pc",
    "old-thinkpad", "media-box", "workshop-tower", "living-room-mini",
)  # fmt: skip


def machine(number: int, **other: Any) -> Json:
    lent, used = (8 + 2 * number) * GIB, (5 + number) * GIB
    return {
        "id": f"{number:064x}", "name": NAMES[number], "this": number == 0, "online": True,
        "state": "working" if number else "ready", "reason": None,
        "device": DEVICES[number % len(DEVICES)], "total_bytes": 2 * lent, "lent_bytes": lent,
        "used_bytes": used if number else 0, "roles": ["host", "lender"],
        "address": f"192.168.1.{20 + number}:4242",
        "layers": [[8 * number, 8 * number + 8]], "seen_at": None,
    } | other  # fmt: skip


def link(number: int, **other: Any) -> Json:
    return {
        "round_trip_seconds": 0.0004 * number, "address": f"192.168.1.{20 + number}:4242",
        "measured_at": 1_790_000_000.0, "measured_address": "", "measured_round_trip_seconds": 0.0005 * number,
        "round_trip_p95_seconds": 0.002 * number, "jitter_seconds": 0.0001,
        "out_bytes_per_s": 117e6 / number, "in_bytes_per_s": 120e6 / number,
        "interface": "eth0", "kind": KINDS[number - 1], "far_kind": KINDS[number - 1], "mtu": 1500,
        "negotiated_bits_per_s": 1_000_000_000,
    } | other  # fmt: skip


def last_answer(tok_s: float, forecast_tok_s: float, **other: Any) -> Json:
    return {
        "at": 1_790_000_000.0, "model": "Llama 3.3 70B Q4_K_M", "machines": 2, "prompt_tokens": 12, "output_tokens": 80,
        "forecast_ttft_s": 1.0, "ttft_s": 1.1, "forecast_tok_s": forecast_tok_s, "tok_s": tok_s,
    } | other  # fmt: skip


def loaded(n_machines: int) -> Json:
    ids = [f"{number:064x}" for number in range(n_machines)]
    stages = [
        {"machine": NAMES[number], "id": ids[number], "role": "middle" if number else "first",
         "first": 8 * number, "last": 8 * number + 8}
        for number in range(n_machines)
    ]  # fmt: skip
    shares = [
        {"part": "link", "machine": NAMES[number], "id": ids[number], "busy_s": 0.1,
         "share": (0.01, 0.14, 0.36)[number % 3]}
        for number in range(1, n_machines)
    ]  # fmt: skip
    shares += [
        {"part": "machine", "machine": NAMES[number], "id": ids[number], "busy_s": 0.2,
         "share": 0.05 * (number + 1)}
        for number in range(n_machines)
    ]  # fmt: skip
    paths = [{"id": key, "machine": key, "token_way_s": 0.001, "chunk_way_s": 0.01} for key in ids]
    return {
        "model": "Llama 3.3 70B Q4_K_M", "shape": "split", "state": "ready", "reason": None, "answering": 1,
        "stages": stages, "progress": {}, "why": [], "advice": [],
        "machines": [{"machine": NAMES[n], "id": ids[n], "needs_bytes": 5 * GIB} for n in range(n_machines)],
        "forecast": {"decode_tok_s": 11.8, "ttft_s": 2.9, "shares": shares},
        "last_answer": last_answer(11.3, 11.8),
        "from": {"machines": paths, "batch_rows": 64},
    }  # fmt: skip


def between(n_machines: int) -> Json:
    """Return the links that the other machines have measured between each other, each reported by its first end."""
    ids = [f"{number:064x}" for number in range(n_machines)]
    return {
        ids[number]: {
            ids[far]: link(far, interface="eno1", far_interface="wlan0", far_kind="wifi")
            for far in range(number + 1, n_machines)
        }
        for number in range(1, n_machines - 1)
    }


def household(n_machines: int, *, with_model: bool = True) -> Json:
    """Return a snapshot with this many machines and a model that is split across all of them."""
    machines = [machine(number) for number in range(n_machines)]
    return {
        "node": {"id": machines[0]["id"], "name": "den-pc", "lending": {"used_by": []}},
        "machines": {entry["id"]: entry for entry in machines},
        "links": {f"{number:064x}": link(number) for number in range(1, n_machines)},
        "links_between": between(n_machines),
        "loaded": loaded(n_machines) if with_model else None,
        "strangers": {}, "pairing": None, "answers": {"running": 0, "waiting": 0},
    }  # fmt: skip


def snapshot_of(content: Json) -> Snapshot:
    """Decode a snapshot in the same way as the window does."""
    return convert(content, Snapshot)
