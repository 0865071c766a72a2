"""The limits that were promised (SAFETY.md 3 to 8): each number stands here once more, so that none moves unnoticed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from app.core.lending.policy import Rules
from app.inference.pipeline.speed_measurement import Deadlines, StageMeter
from app.network.peer.peer_link import Heartbeat

KIB, MIB = 1 << 10, 1 << 20
LIMITS: list[tuple[str, dict[str, Any]]] = [
    ("app.core.household.pairing", {"MAX_TRIES": 3, "WINDOW_SECONDS": 120.0, "ATTEMPT_SECONDS": 10.0}),
    ("app.network.membership.pairing_window", {"CALLERS": 32, "CALLERS_OF_ONE_NETWORK": 16}),
    ("app.network.membership.pairing_window", {"GREETING_SECONDS": 5.0}),
    ("app.network.membership.code_exchange", {"MAX_PAIR_BYTES": 8 * KIB, "NONCE_BYTES": 32, "CODE_DIGITS": 6}),
    ("app.core.household.operations", {"MAX_OPERATION_BYTES": 4 * KIB, "MAX_DER_BYTES": 2 * KIB}),
    ("app.core.household.operations", {"MAX_NAME_CHARACTERS": 64}),
    ("app.network.messages", {"MAX_MESSAGE_BYTES": 64 * KIB, "MAX_DEPTH": 8}),
    ("app.network.peer.peer_links", {"HELLO_SECONDS": 2.0}),
    ("app.network.peer.peer_client", {"CONNECT_SECONDS": 3.0, "OPEN_SECONDS": 8.0}),
    ("app.network.peer.listener", {"HANDSHAKE_SECONDS": 5.0, "IDLE_SECONDS": 9.0}),
    ("app.network.waiting_room", {"PLACES": 64, "PLACES_OF_ONE_NETWORK": 8, "NETWORK_BITS": 64}),
    ("app.network.waiting_room", {"FIRST_BYTE_SECONDS": 1.0}),
    ("app.network.sockets", {"KEEPALIVE_IDLE_SECONDS": 2, "KEEPALIVE_EVERY_SECONDS": 1}),
    ("app.network.sockets", {"KEEPALIVE_PROBES": 3, "UNACKED_MILLISECONDS": 5000}),
    ("app.network.peer.frame_channel", {"MAX_FRAME_BYTES": 16 * MIB + 4 * KIB}),
    ("app.network.traffic_limits", {"STALL_SECONDS": 9.5, "START_SECONDS": 30.0, "START_BYTES": 64 * KIB}),
    ("app.network.traffic_limits", {"MIN_BYTES_PER_SECOND": 16 * KIB}),
    ("backends.frames", {"MAX_PAYLOAD": 16 * MIB}),
    ("backends.contract", {"MAX_BATCH_TOKENS": 512}),
    ("backends.worker.stage_runner", {"KEPT_OUTPUTS": 2}),
    ("app.inference.stages.stage_client", {"CREDIT": 2}),
    ("app.inference.pipeline.sequence", {"MAX_UNREAD": 256, "UNREAD_S": 30.0}),
    ("app.inference.stages.stage_host", {"ORPHAN_COMPUTE_S": 10.0, "KEEP_S": 600.0, "GROWTH": 1.1}),
    ("app.core.recovery.recovery", {"RECONNECT_S": 5.0, "MAX_RECOVERIES": 3, "WAIT_S": 600.0}),
    ("app.core.planner.placement_change", {"SLOWER": 5.0}),
    ("app.machine.keyring_store", {"KEYRING_SECONDS": 10.0}),
    ("app.node.control.guard", {"MAX_BODY_BYTES": 8 * MIB, "MAX_OPEN": 32}),
    ("app.gateway.open_requests", {"UNREAD_SECONDS": 30.0}),
    ("app.node.control.json_bodies", {"UNREAD_SECONDS": 30.0}),
    ("app.gateway.access.slow_client_guard", {"HEADER_SECONDS": 9.5, "IDLE_SECONDS": 60}),
    ("app.gateway.access.slow_client_guard", {"MAX_HEADERS": 64, "MAX_HEADER_BYTES": 8 * KIB}),
    ("app.gateway.servers.lan_server", {"HANDSHAKE_SECONDS": 5.0}),
    ("app.gateway.api_request", {"MOST_ANSWERS": 4, "MOST_BIASES": 1024}),
    ("app.gateway.api_request", {"MOST_STOPS": 8, "MOST_STOP_CHARS": 256}),
    ("app.core.json_schema.json_grammar", {"MAX_SCHEMA_BYTES": 64 * KIB, "MAX_DEPTH": 32}),
    ("backends.grammar", {"MAX_BYTES": 64 * KIB}),
    ("backends.grammar_process", {"STEP_SECONDS": 1.0, "GROW_BYTES": 256 * MIB}),
    (
        "backends.templates.sandboxed_rendering",
        {"MAX_SECONDS": 1.0, "TRIAL_SECONDS": 1.0, "MAX_BYTES": 64 * MIB, "MAX_TEXT": MIB},
    ),
    ("app.catalog.gguf.gguf_file", {"MAX_TENSORS": 65_536, "MAX_ENTRIES": 65_536}),
    ("app.catalog.gguf.gguf_file", {"MAX_KEY_BYTES": 64 * KIB, "MAX_STRING_BYTES": 16 * MIB}),
    ("app.catalog.gguf.gguf_file", {"MAX_ITEMS": 16 * MIB, "MAX_HEADER_BYTES": 256 * MIB}),
    ("app.catalog.gguf.gguf_file", {"MAX_DIMENSIONS": 4}),
    ("app.node.lending.lending_policy", {"OWNERS_SHARE": 0.5}),
]


@pytest.mark.parametrize(("module", "limits"), LIMITS)
def test_a_limit_is_what_was_promised(module: str, limits: dict[str, Any]) -> None:
    known = import_module(module)
    assert {name: getattr(known, name) for name in limits} == limits


def test_a_log_has_4096_lines_at_most_and_half_of_them_are_the_first_machines_own() -> None:
    from app.core.household.membership import FOUNDER_ROOM, OTHERS_ROOM, SIGNER_ROOM

    assert sum(FOUNDER_ROOM.values()) == sum(OTHERS_ROOM.values()) == 2048
    assert all(2 * SIGNER_ROOM[kind] <= OTHERS_ROOM[kind] for kind in SIGNER_ROOM)


def test_silence_is_suspected_after_three_seconds_and_told_as_a_death_within_five() -> None:
    beat = Heartbeat()
    assert (beat.every_seconds, beat.suspect_after_seconds) == (1.0, 3.0)
    assert 4 < beat.dead_after_seconds < 5


def test_a_pause_ends_within_thirty_seconds_unless_its_owner_says_otherwise() -> None:
    assert Rules().drain_s == 30.0


@pytest.mark.parametrize(
    ("slow_decode_s", "slow_row_s", "n_rows", "prefill", "limit_s"),
    [
        (0.1, 0.0, 1, False, 2.0),
        (0.6, 0.0, 1, False, 2.4),
        (9.0, 0.0, 1, False, 10.0),
        (0.0, 0.001, 64, True, 10.0),
        (0.0, 0.1, 64, True, 25.6),
    ],
)
def test_how_long_a_step_may_take(
    slow_decode_s: float, slow_row_s: float, n_rows: int, prefill: bool, limit_s: float
) -> None:
    meter = StageMeter("x", steps=9, slow_decode_s=slow_decode_s, slow_row_s=slow_row_s)
    assert Deadlines().of_step(meter, n_rows, prefill) == pytest.approx(limit_s)
