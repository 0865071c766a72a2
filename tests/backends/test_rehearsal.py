"""Tests that a waiting worker's rehearsals change no answer, whatever came before."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from backends import __main__, worker_orders
from backends.__main__ import READY_S, FrameWait
from backends.contract import GREEDY, Layers, NumberFormat, Role, Segment
from backends.frames import Frame, FrameKind, encode_frame
from backends.worker import process_resources
from backends.worker.service import Service
from testbed import tiny
from tests.backends import cutting

WIDTH, CONTEXT, N_STEPS = 64, 256, 12
FIRST, LAST = bytes([1]) * 16, bytes([2]) * 16


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.llama(tmp_path_factory.mktemp("model") / "m.gguf", layers=4, width=WIDTH)


def open_stage(service: Service, model: Path, pipeline: bytes, layers: Layers, role: Role) -> None:
    order = worker_orders.OpenStage(
        request=1, pipeline=pipeline.hex(), epoch=0, number=int(NumberFormat.F16), context=CONTEXT,
        memory_limit_bytes=0, config=cutting.config(model, layers, role, WIDTH),
    )  # fmt: skip
    tell(service, order)


def tell(service: Service, order: worker_orders.WorkerOrder) -> None:
    (answer,) = service.answer(Frame(FrameKind.TEXT, payload=worker_orders.encode(order)))
    assert not isinstance(worker_orders.decode_answer(answer.payload), worker_orders.Failed)


def step(pipeline: bytes, seq: int, pos: int, number: NumberFormat, payload: bytes) -> Frame:
    return Frame(FrameKind.STEP, pipeline, 0, seq, number, (Segment(0, 1, pos),), payload)


def answered(model: Path, rehearsals: int) -> list[bytes]:
    """Every frame of an answer by the first and the last run in one worker, with rehearsals before each."""
    service = Service()
    open_stage(service, model, FIRST, Layers(0, 2), Role.FIRST)
    open_stage(service, model, LAST, Layers(2, 4), Role.LAST)
    begin = worker_orders.BeginSequence(
        request=2, pipeline=LAST.hex(), slot=0, due_from=1, sampling=GREEDY, history=(), drawn=0
    )
    tell(service, begin)
    token = np.array([7], "<i4").tobytes()
    heard: list[bytes] = []
    frame = step(FIRST, 1, 0, NumberFormat.IDS, token)
    for n in range(N_STEPS):
        for _ in range(rehearsals):
            service.rehearse()
        answers = [encode_frame(answer) for answer in service.answer(frame)]
        heard += answers
        last = step(LAST, n + 1, n, NumberFormat.F16, answers[-1][-NumberFormat.F16.row_bytes(WIDTH) :])
        for _ in range(rehearsals):
            service.rehearse()
        follow = Segment(0, 1, n + 1)
        frame = Frame(FrameKind.FOLLOW, FIRST, 0, n + 2, NumberFormat.IDS, (follow,), encode_frame(last))
    service.close()
    return heard


def test_an_answer_is_the_same_with_rehearsals_before_every_step(model: Path) -> None:
    plain = answered(model, 0)
    assert len(plain) == 1 + 2 * (N_STEPS - 1)
    assert answered(model, 3) == plain


def test_what_failed_is_forgotten_or_closed_is_not_rehearsed(model: Path) -> None:
    service = Service()
    service.rehearse()
    open_stage(service, model, FIRST, Layers(0, 2), Role.FIRST)
    token = np.array([7], "<i4").tobytes()
    (out,) = service.answer(step(FIRST, 1, 0, NumberFormat.IDS, token))
    assert out.kind is FrameKind.OUTPUT
    service.rehearse()
    (lost,) = service.answer(step(FIRST, 2, 1, NumberFormat.IDS, token * 2))  # two ids for one row
    assert lost.kind is FrameKind.LOST
    service.rehearse()
    (out,) = service.answer(step(FIRST, 3, 1, NumberFormat.IDS, token))
    assert out.kind is FrameKind.OUTPUT
    tell(service, worker_orders.CloseStage(request=3, pipeline=FIRST.hex()))
    service.rehearse()
    service.close()


def test_large_steps_are_not_rehearsed(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    open_stage(service, model, FIRST, Layers(0, 2), Role.FIRST)
    list(service.answer(step(FIRST, 1, 0, NumberFormat.IDS, np.array([7], "<i4").tobytes())))
    placed: list[int] = []
    run = service._runs[FIRST]
    monkeypatch.setattr(run, "rehearse", lambda frame: placed.append(len(frame.payload)))
    service.rehearse()
    assert placed == [4]
    monkeypatch.setattr("backends.worker.service.REHEARSED_BYTES", 3)
    service.rehearse()
    assert placed == [4]
    service.close()


@pytest.mark.skipif(os.name == "nt", reason="pipes have no poll() there")
def test_it_is_done_now_and_then_while_awake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_resources, "cpu_quota_cores", lambda: None)
    monkeypatch.setattr(__main__, "switches", lambda: 0)  # nobody else computes on its core
    read, write = os.pipe()
    times: list[int] = []
    waits = FrameWait(read, lambda: times.append(1))
    waits.wait()  # asleep: before any step there is nothing to be ready for
    assert not times
    waits.computed()
    waits.wait()
    assert 2 <= len(times) <= __main__.AWAKE_S / READY_S + 1
    os.close(read)
    os.close(write)
