"""Control messages: everything of ours survives the wire, nothing else is read."""

from __future__ import annotations

import json
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.errors import Reason
from app.core.household.link import LinkKind
from app.core.model import (
    MAX_RUN_LAYERS,
    MAX_RUNS,
    MAX_SETTINGS,
    MAX_SHAPE_BYTES,
    MAX_TENSORS,
    LayerKind,
    LayerRun,
    ModelShape,
    Setting,
    Tensor,
)
from app.network import messages
from app.network.messages import (
    MAX_MESSAGE_BYTES,
    Answering,
    BadMessage,
    Hello,
    HelloAck,
    Leaving,
    LinksMeasured,
    Log,
    MeasuredLink,
    MeasureSpeed,
    Message,
    OpenStage,
    Ping,
    Pong,
    ProcessorSpeed,
    Refuse,
    SpeedMeasured,
    SpeedRefused,
    StageFailed,
    Status,
    decode,
    encode,
    log_batches,
    received_reason,
)

HELLO = {
    "protocol": messages.PROTOCOL,
    "build": "0.1",
    "id": "a" * 64,
    "instance": "b" * 32,
    "name": "den",
    "engines": ["llama.cpp 1"],
    "lendable_bytes": 1 << 40,
    "total_bytes": 1 << 41,
    "device": "CPU",
    "peer_port": 4242,
}
OPEN = OpenStage(
    request=1,
    pipeline="0" * 32,
    epoch=2,
    model="guide",
    manifest="c" * 64,
    first=1,
    last=4,
    n_layers=8,
    width=512,
    number="f16",
    slots=8,
    kv_cells=4096,
    context=2048,
    batch_rows=64,
    engine="llama.cpp",
)
SHAPE = ModelShape(
    "llama",
    256,
    (Setting("llama.rope.freq_base", 6, (10000.0,), is_list=False),),
    (LayerKind((Tensor("attn_q.weight", 12, (256, 256)),)),),
    (LayerRun((0,), (), 1.0), LayerRun((0,) * 8, (Setting("llama.x", 7, (True,) * 8, True),), 8.0)),
    (Tensor("output_norm.weight", 0, (256,)),),
    Tensor("token_embd.weight", 14, (256, 300)),
)
SOME: list[Message] = [
    Hello(**HELLO),  # type: ignore[arg-type]
    HelloAck(**HELLO),  # type: ignore[arg-type]
    Refuse(code="code_wrong", facts={"tries_left": 2}),
    Log(operations=["{}"]),
    Ping(n=1),
    Pong(n=1, steps_done=9, busy_seconds=0.25),
    Status(
        name="den",
        device="CPU",
        total_bytes=3,
        lendable_bytes=2,
        used_bytes=1,
        state="paused",
        reason="paused_game",
        hottest_c=61,
        used_by=["ab" * 32],
        engine="llamacpp 0.3.16",
        watts=46,
        idle_card="NVIDIA GeForce RTX 3060",
        idle_card_pack="CUDA 13",
        main_bytes=1,
    ),
    OPEN,
    Answering(now=True),
    StageFailed(pipeline="0" * 32, code="memory_short", facts={"worker": "x", "cause": "y"}),
    MeasureSpeed(request=3, shape=SHAPE, batch_rows=64, exact=True, again=True),
    SpeedMeasured(
        request=3, layer_s=2e-3, layer_row_s=0.0, position_s=1e-6, chunk_s=0.05, chunk_position_s=1e-5, step_s=2e-4
    ),
    SpeedMeasured(
        request=3,
        layer_s=2e-3,
        layer_row_s=0.0,
        position_s=1e-6,
        chunk_s=0.05,
        step_s=2e-4,
        processor=ProcessorSpeed(layer_s=2e-2, layer_row_s=1e-3, position_s=1e-6, chunk_s=0.5, step_s=2e-4),
    ),
    SpeedRefused(request=3, code="speed_busy"),
    Leaving(reason="shutting_down"),
    LinksMeasured(
        links=[
            MeasuredLink(
                machine="ab" * 32,
                age_s=12.0,
                round_trip_s=4e-4,
                round_trip_p95_s=2e-3,
                out_bytes_per_s=1.1e8,
                in_bytes_per_s=9e7,
                interface="eth0",
                kind=LinkKind.ETHERNET,
                negotiated_bits_per_s=10**9,
                far_kind=LinkKind.WIFI,
            )
        ]
    ),
]


@pytest.mark.parametrize("message", SOME, ids=lambda message: type(message).__name__)
def test_a_message_survives_the_wire(message: Message) -> None:
    assert decode(encode(message)) == message


@pytest.mark.parametrize("kind", get_args(Message), ids=lambda kind: kind.__name__)
def test_every_kind_refuses_unknown_fields(kind: type[Message]) -> None:
    assert kind.__struct_config__.forbid_unknown_fields
    assert kind.__struct_config__.frozen


def changed(field: str, value: object) -> bytes:
    return json.dumps({"type": "hello", **HELLO, field: value}).encode()


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"type":"destroy"}',
        b'{"n":1}',
        b'{"type":"ping"}',
        b'{"type":"ping","n":1,"m":2}',
        b'{"type":"ping","n":-1}',
        b'{"type":"ping","n":"1"}',
        b'{"type":"ping","n":1.5}',
        b'{"type":"ping","n":1}x',
        b'{"type":"pong","n":1,"steps_done":1,"busy_seconds":NaN}',
        b"\xff",
        b'{"type":"ping","n":' + b"[" * 60_000,
        b'{"type":"ping","n":1}' + b" " * MAX_MESSAGE_BYTES,
        changed("id", "A" * 64),
        changed("id", "a" * 63),
        changed("name", ""),
        changed("name", "x" * 65),
        changed("engines", ["x"] * 17),
        changed("peer_port", 0),
        changed("lendable_bytes", -1),
        changed("lendable_bytes", 1 << 60),
        changed("password", "x"),
    ],
)
def test_anything_else_is_a_bad_message(raw: bytes) -> None:
    with pytest.raises(BadMessage):
        decode(raw)


def measured(field: str, value: object) -> bytes:
    sound = {"layer_s": 1, "layer_row_s": 0, "position_s": 0, "chunk_s": 1, "chunk_position_s": 0, "step_s": 0}
    return json.dumps({"type": "speed_measured", "request": 1, **sound, field: value}).encode()


@pytest.mark.parametrize("field", ["layer_s", "layer_row_s", "position_s", "chunk_s", "chunk_position_s", "step_s"])
@pytest.mark.parametrize("value", [-1e-9, 1e4, float("nan"), float("inf"), "1", None, True])
def test_a_speed_that_cannot_be_is_a_bad_message(field: str, value: object) -> None:
    assert isinstance(decode(measured(field, 0.5)), SpeedMeasured)
    with pytest.raises(BadMessage):
        decode(measured(field, value))


def test_a_speed_of_an_older_app_says_nothing_of_positions_in_a_chunk() -> None:
    older = json.loads(measured("layer_s", 0.5))
    del older["chunk_position_s"]
    answer = decode(json.dumps(older).encode())
    assert isinstance(answer, SpeedMeasured)
    assert answer.chunk_position_s == 0.0


@pytest.mark.parametrize("field", ["layer_s", "chunk_s"])
def test_a_layer_takes_some_time(field: str) -> None:
    with pytest.raises(BadMessage):
        decode(measured(field, 0))


def asked(**changes: object) -> bytes:
    shape = msgspec.to_builtins(SHAPE) | changes
    return json.dumps({"type": "measure_speed", "request": 1, "shape": shape, "batch_rows": 64}).encode()


TENSOR = {"name": "x", "kind": 1, "dims": [32, 32]}
SETTING = {"key": "llama.x", "kind": 4, "values": [1], "is_list": False}
RUN = {"kinds": [0], "settings": [], "average_layers": 1.0}


@pytest.mark.parametrize(
    "changes",
    [
        {"architecture": "LLAMA"},
        {"width": 0},
        {"width": 1 << 18},
        {"more": 1},
        {"kinds": []},
        {"kinds": [{"tensors": []}]},
        {"kinds": [{"tensors": [TENSOR], "count": 1}]},
        {"kinds": [{"tensors": [TENSOR]}] * (MAX_RUN_LAYERS + 1)},
        {"kinds": [{"tensors": [TENSOR] * (MAX_TENSORS + 1)}]},
        {"kinds": [{"tensors": [TENSOR | {"dims": []}]}]},
        {"kinds": [{"tensors": [TENSOR | {"dims": [1] * 5}]}]},
        {"kinds": [{"tensors": [TENSOR | {"dims": [-1]}]}]},
        {"kinds": [{"tensors": [TENSOR | {"dims": [1 << 33]}]}]},
        {"kinds": [{"tensors": [TENSOR | {"name": "../x"}]}]},
        {"kinds": [{"tensors": [TENSOR | {"name": "x" * 49}]}]},
        {"runs": []},
        {"runs": [RUN] * (MAX_RUNS + 1)},
        {"runs": [RUN | {"kinds": []}]},
        {"runs": [RUN | {"kinds": [0] * (MAX_RUN_LAYERS + 1)}]},
        {"runs": [RUN | {"kinds": [-1]}]},
        {"runs": [RUN | {"settings": [SETTING] * (MAX_SETTINGS + 1)}]},
        {"runs": [RUN | {"average_layers": 0.0}]},
        {"runs": [RUN | {"average_layers": 1e5}]},
        {"settings": [SETTING] * (MAX_SETTINGS + 1)},
        {"settings": [SETTING | {"key": "x"}]},
        {"settings": [SETTING | {"values": []}]},
        {"settings": [SETTING | {"values": [1] * 65}]},
        {"settings": [SETTING | {"values": ["x" * 65]}]},
        {"settings": [SETTING | {"values": [[1]]}]},
        {"settings": [SETTING | {"values": [1 << 70]}]},
        {"settings": [SETTING | {"kind": 13}]},
    ],
)
def test_a_shape_out_of_bounds_is_a_bad_message(changes: dict[str, object]) -> None:
    assert isinstance(decode(asked()), MeasureSpeed)
    with pytest.raises(BadMessage):
        decode(asked(**changes))


def test_the_largest_shape_of_a_real_kind_fits_a_message() -> None:
    """Sixteen kinds of layers of 24 tensors each, and sixty settings."""
    tensors = tuple(Tensor(f"ffn_gate_up_exps_{n}.weight", 12, (8192, 28_672, 8)) for n in range(24))
    settings = tuple(
        Setting(f"llama.attention.sliding_window_pattern_{n}", 4, (1 << 31,), is_list=False) for n in range(60)
    )
    lists = tuple(Setting(f"llama.attention.recurrent_layers_{n}", 7, (False,) * 16, True) for n in range(6))
    run = LayerRun(tuple(range(16)), lists, 15.123456789012345)
    kinds = (LayerKind(tensors),) * 16
    large = ModelShape("llama", 8192, settings, kinds, (run,) * 3, tensors, tensors[0])
    assert len(msgspec.json.encode(large)) < MAX_SHAPE_BYTES
    encode(MeasureSpeed(request=1, shape=large, batch_rows=64))


def test_depth_is_measured_outside_strings() -> None:
    brackets = json.dumps({"type": "leaving", "reason": "[[[[[[[[[[" + '"{{{{{{{{'}).encode()
    with pytest.raises(BadMessage, match="regex"):  # read, and only then found odd
        decode(brackets)
    with pytest.raises(BadMessage, match="deeper"):
        decode(b'{"type":"log","operations":' + b"[" * 8 + b"]" * 8 + b"}")
    many = Log(operations=["[{" * 20] * 5)
    assert decode(encode(many)) == many


def test_a_message_of_ours_that_is_too_long_is_a_bug() -> None:
    with pytest.raises(ValueError, match="Log"):
        encode(Log(operations=["x" * 4096] * 20))


def test_a_long_log_goes_in_several_messages() -> None:
    lines = [str(n) * 900 for n in range(10)] * 30
    batches = log_batches(lines)
    assert [line for batch in batches for line in batch.operations] == lines
    assert all(len(encode(batch)) <= MAX_MESSAGE_BYTES for batch in batches)
    assert log_batches([]) == [Log(operations=[])]


def test_reasons_of_peers_are_used_only_when_they_make_a_sentence() -> None:
    good = Refuse(code="code_wrong", facts={"tries_left": 2})
    assert received_reason(good) == Reason("code_wrong", {"tries_left": 2})
    for odd in (
        Refuse(code="no_such_code"),
        Refuse(code="code_wrong"),
        Refuse(code="disk_full", facts={"folder": "x", "needed_bytes": "x", "free_bytes": 1}),
    ):
        assert received_reason(odd).code in ("peer_refused", "disk_full")
    foreign = StageFailed(pipeline="0" * 32, code="peer_stopped", facts={"name": "a\x1b[1m\u202eb"})
    assert received_reason(foreign) == Reason("peer_stopped", {"name": "a[1mb"})


@given(st.binary(max_size=300))
def test_no_bytes_raise_anything_but_bad_message(raw: bytes) -> None:
    try:
        decode(raw)
    except BadMessage:
        return


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=10,
)


@given(st.sampled_from(SOME), st.text(max_size=12), JSON)
def test_no_changed_field_raises_anything_but_bad_message(message: Message, name: str, value: object) -> None:
    fields = msgspec.json.decode(encode(message))
    key = name if len(name) % 2 else sorted(fields)[len(name) % len(fields)]
    fields[key] = value
    try:
        decode(json.dumps(fields).encode("utf-8", "surrogatepass"))
    except BadMessage:
        return


def test_protocols_understand_each_other_as_neighbors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "OLDEST_PROTOCOL", 3)
    together = [(index, other) for index in range(7) for other in range(7) if messages.are_compatible(index, other)]
    assert together == [(3, 3), (3, 4), (4, 3), (4, 4), (4, 5), (5, 4), (5, 5), (5, 6), (6, 5), (6, 6)]


def test_the_most_links_that_may_be_told_fit_into_a_message() -> None:
    widest = "\U0001f50c" * messages.MAX_INTERFACE_CHARACTERS
    link = MeasuredLink(
        machine="f" * 64, age_s=1 / 3e-9, round_trip_s=1 / 3e-2, round_trip_p95_s=1 / 3e-2,
        out_bytes_per_s=1e13 / 3, in_bytes_per_s=1e13 / 3, interface=widest,
        kind=LinkKind.THUNDERBOLT, negotiated_bits_per_s=1 << 50, far_interface=widest,
        far_kind=LinkKind.THUNDERBOLT, far_negotiated_bits_per_s=1 << 50,
    )  # fmt: skip
    most = LinksMeasured(links=[link] * messages.MAX_LISTED_MACHINES)
    assert decode(encode(most)) == most
    with pytest.raises(BadMessage):
        decode(encode(LinksMeasured(links=[link] * (messages.MAX_LISTED_MACHINES + 1))))
