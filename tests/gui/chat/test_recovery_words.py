"""A machine that drops under an answer: said while it is mended, and a note in the details afterwards."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.core.chat import ChatId, MessageId
from app.gui.app.pool_status import StatusKind, current_status
from app.gui.chat.answer import Answer, Ending
from app.gui.chat.message import answer_stats
from app.gui.chat.message.answer_stats import AnswerStats
from app.gui.chat.message.branch_view import state_of
from app.gui.chat.session import RunningAnswer
from tests.findings import tells
from tests.gui.typed_api import answer_line, finished_answer, pool_of

TEXT = "attic stopped responding. Reconnecting…"
LOST = {"machine": "attic", "reason": "", "detected_after_s": 0.1, "recovered_after_s": 48.0}
STEP = {"step": "sending", "machine": "kitchen", "done": 1, "total": 4, "unit": "bytes"}


class Client:
    """Hands over what a test says, as an answer of the node."""

    def call(self, _method: str, _path: str, _body: Any, done: Any, _failed: Any, take: Any, **_: Any) -> None:
        self._done, self._take = done, take

    def done(self, answer: dict[str, Any]) -> None:
        self._done(finished_answer(answer))

    def take(self, line: dict[str, Any]) -> None:
        self._take(answer_line(line))


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def answer(client: Client, qapp: object) -> Answer:
    made = Answer(cast("Any", client), "key", {})
    made.begin()
    return made


def test_what_happens_is_said_until_the_answer_goes_on(client: Client, answer: Answer) -> None:
    values: list[int] = []
    answer.progressed.connect(lambda: values.append(1))
    running = RunningAnswer(ChatId("c1"), MessageId("m1"), "", answer, model="m")
    client.take({"delta": {"text": "One ", "token_ids": [1]}})
    client.take({"recovery": {"state": "reconnecting", "machine": "attic", **tells(TEXT, "text")}})
    assert (state_of(running, pool_of({})), answer.text, values) == (TEXT, "One ", [1])
    progress = {"kitchen": STEP, "study": STEP | {"done": 4, "machine": "study"}}
    pool = pool_of({"loaded": {"model": "m", "progress": progress}})
    assert state_of(running, pool) == f"{TEXT} Sending layers on kitchen: 25%"
    client.take({"delta": {"text": "two", "token_ids": [2]}})
    assert state_of(running, pool) != TEXT
    assert answer.text == "One two"


@pytest.mark.parametrize(
    ("place", "seconds", "words"),
    [
        (1, 6, "Next in line, about 6 s"),
        (2, 20, "2nd in line, about 20 s"),
        (3, None, "3rd in line"),
        (11, 75, "11th in line, about 1 min 15 s"),
        (22, None, "22nd in line"),
        (4, 0, "4th in line"),
    ],
)
def test_who_waits_is_told_the_place_and_about_how_long(
    answer: Answer, place: int, seconds: int | None, words: str
) -> None:
    line = [
        {"conversation": "other", "place": 9, "seconds": 90},
        {"conversation": "c1", "place": place, "seconds": seconds},
    ]
    pool = pool_of({"answers": {"running": 1, "waiting": 2, "line": line}})
    running = SimpleNamespace(answer=answer, waits=False, chat="c1", tools=None)
    assert state_of(cast("RunningAnswer", running), pool) == words


def test_a_note_stays_in_the_details(client: Client, answer: Answer) -> None:
    ended: list[Ending] = []
    answer.ended.connect(ended.append)
    client.done({"token_ids": [1], "recoveries": 1, "recovered": [LOST]})
    [note] = [line for line in answer_stats.recoveries(ended[0].stats) if "attic" in line]
    assert "48" in note


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (LOST, "Lost attic and continued after 48"),
        (LOST | {"left": True}, "attic left, and the answer continued after 48"),
        (LOST | {"machine": ""}, "Moved the layers and continued after 48"),
    ],
)
def test_the_note_blames_nobody_who_left_or_was_not_there(item: dict[str, Any], words: str, qapp: object) -> None:
    stats = AnswerStats.of(finished_answer({"recovered": [item]}))
    [note] = answer_stats.recoveries(stats)
    assert not answer_stats.details(stats)
    assert note.startswith(words)


def test_guesses_stand_in_the_details(client: Client, answer: Answer) -> None:
    ended: list[Ending] = []
    answer.ended.connect(ended.append)
    client.done({"token_ids": [1] * 90, "guessed": 40, "guessed_right": 31})
    assert answer_stats.details(ended[0].stats) == ["Speculative decoding: 40 tokens guessed, 31 correct"]
    assert answer_stats.details(AnswerStats(guessed=0, guessed_right=0)) == []
    gained = AnswerStats(guessed=40, guessed_right=31, guess_gain=1.237)
    assert "Speed compared with plain decoding: 1.24 times" in "\n".join(answer_stats.details(gained))
    both = AnswerStats(guessed=40, guessed_right=31, guess_runs=16, drafted_right=11)
    assert answer_stats.details(both)[1:] == [
        "Correct guesses: 20 from earlier text, 11 from the draft model",
        "Guessed at a time, on average: 2.5 tokens",
    ]


def test_the_tray_and_the_status_line_say_it(qapp: object) -> None:
    loaded = {"model": "m", "state": "recovering", **tells(TEXT)}
    pool_status = current_status(pool_of({"loaded": loaded}))
    assert pool_status.kind is StatusKind.WORKING
    assert TEXT in vars(pool_status).values() if hasattr(pool_status, "__dict__") else TEXT in repr(pool_status)
