"""Orders and answers survive JSON, and what is not one of them is refused."""

from __future__ import annotations

import msgspec
import pytest

from backends import worker_orders
from backends.contract import Layers, LocalTime, Role, Sampling, StageConfig

CONFIG = StageConfig("fake", "fake:", "", Role.LAST, Layers(2, 4), 16, 4, 1024, 64, 1)
ASKED: list[worker_orders.WorkerOrder] = [
    worker_orders.OpenStage(
        request=1, pipeline="00" * 16, epoch=3, number=1, context=256, memory_limit_bytes=0,
        config=CONFIG,
    ),
    worker_orders.CloseStage(request=2, pipeline="00" * 16),
    worker_orders.BeginSequence(
        request=3, pipeline="00" * 16, slot=1, due_from=5, history=(1, 2), drawn=1,
        sampling=Sampling(logit_bias=((3, -1.5),), grammar='root ::= "a"'),
    ),
    worker_orders.OpenVocabulary(request=4, path="x.gguf"),
    worker_orders.Tokenize(request=5, text="Grüße"),
    worker_orders.Render(request=6, messages=({"role": "user", "content": "hi"},), now=LocalTime(1.0, -60),
                  options={"enable_thinking": False, "reasoning_effort": "low", "n": 1.5, "x": None}),
]  # fmt: skip
ANSWERS: list[worker_orders.WorkerAnswer] = [
    worker_orders.StageOpened(request=1, memory_bytes=5, seconds=0.5),
    worker_orders.StageClosed(request=2),
    worker_orders.SequenceBegun(request=3),
    worker_orders.VocabularyOpened(request=4, n_vocab=300, end_tokens=(1,), bos=0, adds_bos=True, has_template=False),
    worker_orders.Pieces(request=4, first=0, pieces=(b"", b"\xff"), last=True),
    worker_orders.Tokenized(request=5, ids=(1, 2)),
    worker_orders.Rendered(request=6, text="hi"),
    worker_orders.Failed(request=7, code="memory_short", text="no"),
]


@pytest.mark.parametrize("order", ASKED, ids=lambda order: type(order).__name__)
def test_an_order_comes_back(order: worker_orders.WorkerOrder) -> None:
    assert worker_orders.decode_order(worker_orders.encode(order)) == order


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: type(answer).__name__)
def test_an_answer_comes_back(answer: worker_orders.WorkerAnswer) -> None:
    assert worker_orders.decode_answer(worker_orders.encode(answer)) == answer


@pytest.mark.parametrize(
    "data",
    [
        b"{}",
        b'{"order":"close","request":1,"pipeline":"","more":1}',
        b'{"order":"opened","request":1,"memory_bytes":1,"seconds":1}',
        worker_orders.encode(ASKED[0]).replace(b'"first":2', b'"first":9'),
        worker_orders.encode(ASKED[0]).replace(b'"last"', b'"tail"'),
    ],
)
def test_what_is_no_order_is_refused(data: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        worker_orders.decode_order(data)
