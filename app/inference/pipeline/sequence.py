"""The state of one request: its tokens, the queue of items that its client has not read, and the data for a replay."""

from __future__ import annotations

import asyncio
import time
from array import array
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from app.core.errors import AppError, BadInput
from app.core.recovery.recovery import InterruptionRecord, Notice, continued_notice
from app.core.scheduler.routing import Pace, pace_of
from app.inference.pipeline.speculative_tokens import Guesses, Source
from app.inference.pipeline.speed_measurement import RequestFigures, StageFigures
from backends.contract import GRAMMAR_TOO_HEAVY, PictureGrid, Sampling, SlotCheckpoints

MAX_UNREAD = 256  # tokens in the queue at which a sequence pauses until its client reads (SAFETY.md 5)
UNREAD_S = 30.0  # time without reading after which a sequence with a full queue ends
ALIKE_S = 10.0  # answers that took longer are not replayed exactly, but in large chunks
PAUSE_S = 2.0  # longest part of a gap between two tokens that counts as computing time

RANGES: dict[str, tuple[float, float]] = {  # outside these ranges, samplers fail or generate nonsense
    "temperature": (0, 100),
    "top_k": (-1, 1 << 30),
    "top_p": (0, 1),
    "min_p": (0, 1),
    "repeat_penalty": (0.01, 100),
    "repeat_last_n": (-1, 1 << 20),
    "presence_penalty": (-100, 100),
    "frequency_penalty": (-100, 100),
    "seed": (0, (1 << 63) - 1),
}
MOST_BIAS = 100  # the same limit as OpenAI's


@dataclass(frozen=True, slots=True)
class PlacedRows:
    """Rows of a picture in a prompt. The prompt contains an id for each row, counting down from `first`, just like
    token ids.

    Equal pictures have equal ids, and different pictures have different ids. The ids therefore show which rows a KV
    cache already contains.
    """

    pos: int  # position of the first row
    first: int
    n_rows: int
    rows: bytes  # float32
    sees_all: bool  # whether the rows see each other, so that they are computed in one step
    n_columns: int = 0  # the rows in a line of the picture if their positions have two dimensions, and 0 otherwise

    @property
    def end(self) -> int:
        return self.pos + self.n_rows

    @property
    def is_whole(self) -> bool:
        """Return whether the rows must be computed in one step and kept together.

        All rows of a grid have the same time position, so a KV cache can only be cut before the first of them.
        """
        return self.sees_all or self.n_columns > 0

    @property
    def grid(self) -> PictureGrid | None:
        """Return the place and shape of the picture if its positions have two dimensions."""
        return PictureGrid(self.pos, self.n_columns, self.n_rows // self.n_columns) if self.n_columns else None

    def has(self, pos: int, token: int) -> bool:
        """Return whether this id at this position is one of the rows."""
        return self.pos <= pos < self.end and token == self.first - (pos - self.pos)


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt and the settings for its answer.

    The KV cache is reused only within one `conversation`. A server with several users or API keys must use separate
    conversations for them. Otherwise, timing would reveal to one user what another has asked.
    """

    ids: tuple[int, ...]
    sampling: Sampling
    max_tokens: int
    end_tokens: tuple[int, ...] = ()  # if empty, the answer runs to max_tokens
    conversation: str | None = None
    ends_with: Callable[[int], bool] | None = None  # called with each token as it is sampled; must be fast
    name: str = ""  # the request's id, for logs
    guesses: bool = True  # whether to guess its next tokens when machines would be idle
    is_usual: bool = True  # whether its duration helps to predict those of other requests
    has_priority: bool = False  # whether it goes ahead of other waiting requests
    read: Callable[[int], None] | None = None  # called once with the number of prompt tokens that were computed
    pictures: tuple[PlacedRows, ...] = ()  # in the order of the prompt
    # Whose kept prompts it may use and add to, on disk (kept_prompts.py). Empty: none, as for guests.
    kept_for: str = ""


def check_request(request: Request, room: int, n_vocab: int, trained: int | None = None) -> None:
    """Raise BadInput if a request has invalid ids or settings, or does not fit into `room` positions.

    trained: the number of positions that the model was trained for, if known.
    """
    if not request.ids:
        raise BadInput("prompt_empty")
    tokens = len(request.ids)
    if tokens >= room and trained is not None and tokens >= trained:
        raise BadInput("prompt_beyond_model", tokens=tokens, context=trained)
    if tokens >= room:
        raise BadInput("prompt_too_long", tokens=tokens, context=room)
    if not all(0 <= token < n_vocab for token in request.ids):
        _check_pictures(request, n_vocab)
    if request.max_tokens < 1:
        raise BadInput("max_tokens_low", tokens=request.max_tokens)
    _check_sampling(request.sampling, n_vocab)


def _check_pictures(request: Request, n_vocab: int) -> None:
    """Raise BadInput if an id is neither a token's id nor the id of a picture row at its position."""
    pictures = iter(request.pictures)
    current = next(pictures, None)
    for pos, token in enumerate(request.ids):
        while current is not None and current.end <= pos:
            current = next(pictures, None)
        if not 0 <= token < n_vocab and not (current is not None and current.has(pos, token)):
            raise BadInput("token_unknown", most=n_vocab - 1)


def _check_sampling(sampling: Sampling, n_vocab: int) -> None:
    """Raise BadInput if a setting is outside the range that samplers accept."""
    for name, (least, most) in RANGES.items():
        if not least <= getattr(sampling, name) <= most:
            raise BadInput("sampling_odd", name=name, least=least, most=most)
    if not all(-MOST_BIAS <= bias <= MOST_BIAS for _, bias in sampling.logit_bias):
        raise BadInput("sampling_odd", name="logit_bias", least=-MOST_BIAS, most=MOST_BIAS)
    for token, _ in sampling.logit_bias:
        if not 0 <= token < n_vocab:
            raise BadInput("bias_unknown", token=token, most=n_vocab - 1, field="logit_bias")


@dataclass(frozen=True, slots=True)
class Token:
    """A sampled token."""

    id: int
    # if requested, the log probabilities of this token and of the most likely ones
    likely: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Finish:
    """The last item of a stream."""

    reason: str  # "stop" for an end token or `ends_with`; "length" if max_tokens is reached or the context is full
    figures: RequestFigures


class SequenceOwner(Protocol):
    """The pipeline that computes a sequence."""

    place: int

    def wake(self) -> None: ...
    def leave(self, sequence: SequenceState) -> None: ...


@dataclass(slots=True)
class Timing:
    """The times of one request, in seconds on a monotonic clock. A time that has not been reached is 0."""

    asked_at: float = field(default_factory=time.monotonic)
    begun_at: float = 0.0  # when it first got a slot
    first_at: float = 0.0  # when its first token was sampled
    last_at: float = 0.0
    generating_s: float = 0.0  # time from the first token to the last, in which each gap counts for at most PAUSE_S
    restored_s: float = 0.0  # time for reading a kept prompt from disk
    stages_before: tuple[StageFigures, ...] = ()  # stage figures from when it got its slot or was last recovered

    def token(self, now: float) -> None:
        """Record the arrival of a token."""
        self.generating_s += min(now - self.last_at, PAUSE_S) if self.first_at else 0.0
        self.last_at = now
        self.first_at = self.first_at or now


class OutputQueue:
    """The queue of one sequence's items, which the pipeline fills and the client reads."""

    def __init__(self) -> None:
        self._items: deque[Token | Notice | Finish | AppError] = deque()
        self._reader: asyncio.Future[None] | None = None
        self._full_since: float | None = None
        self.is_closed = False  # whether the end was put in, or the client has left

    def __len__(self) -> int:
        return len(self._items)

    @property
    def is_full(self) -> bool:
        """Return whether the client is too far behind."""
        return len(self._items) >= MAX_UNREAD

    def full_s(self, now: float) -> float:
        """Return for how many seconds the queue has been full without the client reading from it."""
        return now - self._full_since if self._full_since is not None else 0.0

    def put(self, item: Token | Notice | Finish | AppError) -> None:
        """Append an item and wake the client."""
        self._items.append(item)
        if len(self._items) == MAX_UNREAD:
            self._full_since = time.monotonic()
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    async def get(self) -> Token | Notice | Finish:
        """Wait for the next item and return it. Raises the error that ended the sequence."""
        while not self._items:
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        item = self._items.popleft()
        self._full_since = time.monotonic() if self.is_full else None
        if isinstance(item, AppError):
            raise item
        return item


@dataclass(slots=True)
class SequenceState:
    """A request that is waiting, running or finished, and its tokens. Only the pipeline's tasks may change it."""

    request: Request
    cells: int  # positions reserved for it
    owner: SequenceOwner  # another pipeline may take over the sequence
    timing: Timing = field(default_factory=Timing)
    tokens: array[int] = field(init=False)  # prompt and answer so far, as int32 in wire format
    slot: int = -1
    due_from: int = field(init=False)  # a token is sampled after each segment that ends here or later
    entered: int = 0  # positions in the KV cache or on their way to it
    # positions at which the recurrent state of its slot was kept, if it has any
    kept: SlotCheckpoints = field(default_factory=SlotCheckpoints)
    since: int = 0
    under_way: int = 0  # number of its micro-batches in flight
    overtaken: int = 0
    reused: int = 0
    leaving: bool = False  # no more of its positions may enter the pipeline
    begun: bool = False  # sampling is set up, so its known positions may enter the pipeline
    interruption: InterruptionRecord = field(default_factory=InterruptionRecord)
    exact_until: int = 0  # during an exact replay, positions before this one enter in their original chunks
    # positions that any run may hold, at least those that have entered: more after a wrong guess
    computed_to: int = 0
    # log probabilities of the next tokens, by position
    likely: dict[int, tuple[tuple[int, float], ...]] = field(default_factory=dict)
    guesses: Guesses = field(default_factory=Guesses)
    unread: OutputQueue = field(default_factory=OutputQueue)

    def __post_init__(self) -> None:
        self.tokens = array("i", self.request.ids)
        self.due_from = len(self.tokens)

    # For the scheduler

    @property
    def known(self) -> int:
        return len(self.tokens)

    @property
    def until(self) -> int:
        """Return the end of the next chunk. An exact replay uses the chunks of the original computation."""
        end = self.known
        if self.entered < self.exact_until:
            edges = (self.reused, self.n_prompt, self.entered + 1)
            end = next(edge for edge in edges if edge > self.entered)
        begins = (picture.pos for picture in self.request.pictures if picture.is_whole and picture.pos > self.entered)
        return min(end, next(begins, end))

    @property
    def block(self) -> int:
        """Return the number of rows of the picture that must be computed in one step next, or 0 if there is none."""
        pictures = self.request.pictures
        return next((picture.n_rows for picture in pictures if picture.is_whole and picture.pos == self.entered), 0)

    @property
    def block_sees_all(self) -> bool:
        """Return whether all rows of the `block` attend to each other."""
        return any(picture.sees_all and picture.pos == self.entered for picture in self.request.pictures)

    @property
    def grids(self) -> tuple[PictureGrid, ...]:
        """Return the grids of the pictures whose rows have positions in two dimensions."""
        return tuple(picture.grid for picture in self.request.pictures if picture.grid is not None)

    def reusable(self, keep: int) -> int:
        """Return how many of the first `keep` positions in a KV cache can be kept. Pictures are kept whole."""
        cut = (
            picture.pos for picture in self.request.pictures if picture.is_whole and picture.pos < keep < picture.end
        )
        return next(cut, keep)

    @property
    def is_closed(self) -> bool:
        """Return whether the stream is closed, because its last item was sent or the client left."""
        return self.unread.is_closed

    @property
    def is_apart(self) -> bool:
        return self.interruption.is_suspected or (bool(self.request.pictures) and self.block > 0)

    @property
    def conversation(self) -> str | None:
        return self.request.conversation

    @property
    def has_priority(self) -> bool:
        """Return whether the sequence takes precedence in the queue. Sequences that began on another pipeline
        always do.
        """
        return self.request.has_priority or self.timing.begun_at > 0

    @property
    def ids(self) -> tuple[int, ...]:
        return self.request.ids

    @property
    def n_prompt(self) -> int:
        return len(self.request.ids)

    @property
    def continues(self) -> bool:
        """Return whether the sequence will continue after its next token, as far as can be known in advance."""
        ends = self.answer_tokens + 1 >= self.request.max_tokens or self.known + 1 >= self.cells
        return not (ends or self.leaving or len(self.unread) + 1 >= MAX_UNREAD)

    @property
    def guessable(self) -> bool:
        """Return whether the next positions may be computed with guessed tokens.

        All known positions must be in flight, and the sequence must continue after another correct guess.
        """
        if not self.request.guesses or not self.begun or self.leaving:
            return False
        n_ahead = len(self.guesses.in_flight)
        return self.entered == self.known + n_ahead and self.most_guesses(n_ahead) > 0

    def most_guesses(self, n_ahead: int = 0) -> int:
        """Return how many tokens may be guessed after `n_ahead` guesses so that another token follows them."""
        if not self.request.guesses:
            return 0
        room = min(self.n_prompt + self.request.max_tokens, self.cells) - 1 - self.known
        return max(0, min(room, MAX_UNREAD - 1 - len(self.unread)) - n_ahead)

    @property
    def n_read(self) -> int:
        """Return the number of prompt tokens that are in flight or were computed for this sequence."""
        entered = self.n_prompt if self.timing.first_at else min(self.entered, self.n_prompt)
        return max(0, entered - self.reused)

    @property
    def answer_tokens(self) -> int:
        return len(self.tokens) - len(self.request.ids)

    def begin_arguments(self) -> tuple[int, int, Sampling, Sequence[int], int]:
        """Return the arguments of StageClient.begin: slot, due_from, sampling, history and drawn."""
        sampling, drawn = self.request.sampling, self.due_from - self.n_prompt
        penalties = (sampling.presence_penalty, sampling.frequency_penalty)
        known = drawn > 0 or sampling.repeat_penalty != 1.0 or any(penalties)
        history: Sequence[int] = self.tokens[: self.due_from] if known else ()
        if self.request.pictures:  # their ids are not those of tokens
            history = [token for token in history if token >= 0]
        return self.slot, self.due_from, sampling, history, drawn

    def rewind(self, *, alone: bool = False) -> None:
        """Prepare to compute all tokens again before the next one is sampled, because the KV cache is lost.

        alone: whether no other answer is running. If so, a greedy answer that took no longer than ALIKE_S is replayed
        token by token. Engines compute a single row differently from several, which slightly changes the numbers and
        may later decide a near tie differently (see docs/same-words.md).
        """
        greedy = self.request.sampling.temperature <= 0
        self.exact_until = self.known if alone and greedy and self.timing.generating_s <= ALIKE_S else 0
        self.entered = self.under_way = self.computed_to = 0
        self.likely.clear()
        self.due_from = len(self.tokens)
        self.begun, self.kept = False, self.kept.cut_back(0)
        self.guesses.clear()

    def replay_s(self, pace: Pace) -> float:
        """Return the seconds needed to compute all tokens again after `rewind`."""
        alone = self.answer_tokens if self.exact_until else 0
        return (self.known - alone) * pace.row_s + alone * pace.step_s

    def sampled(self, token: int, now: float, figures: Callable[[], tuple[StageFigures, ...]]) -> None:
        """Process a sampled token."""
        if self.leaving:
            return
        if token == GRAMMAR_TOO_HEAVY:
            self.end(BadInput("form_too_heavy"))
            return
        request, likely = self.request, self.likely.pop(self.known, ())
        self.timing.token(now)
        if self.interruption.loss is not None and (done := self.interruption.record_recovery(now)):
            self.put(continued_notice(done))
        self.interruption.count_token()
        if token in request.end_tokens:
            self.end(Finish("stop", self.figures(figures())))
            return
        self.tokens.append(token)
        self.put(Token(token, likely))
        if request.ends_with is not None and request.ends_with(token):
            self.end(Finish("stop", self.figures(figures())))
        elif self.answer_tokens >= request.max_tokens or self.known >= self.cells:
            self.end(Finish("length", self.figures(figures())))

    # Between the pipeline and the client

    def put(self, item: Token | Notice | Finish | AppError) -> None:
        """Send an item to the client."""
        if isinstance(item, Notice):
            self.interruption.record_notice(item)
        self.unread.put(item)

    def end(self, item: Finish | AppError) -> None:
        """End the sequence and send this last item to the client."""
        self.leaving = True
        if not self.is_closed:
            self.unread.is_closed = True
            self.put(item)

    def figures(self, stages: tuple[StageFigures, ...]) -> RequestFigures:
        timing, n_later = self.timing, self.answer_tokens - 1
        spent = timing.last_at - timing.first_at
        return RequestFigures(
            prompt_tokens=self.n_prompt,
            reused_tokens=self.reused,
            answer_tokens=self.answer_tokens,
            queued_s=timing.begun_at - timing.asked_at,
            ttft_s=timing.first_at - timing.asked_at,
            decode_tok_s=n_later / spent if n_later > 0 and spent > 0 else 0.0,
            stages=tuple(now.since(before) for now, before in zip(stages, timing.stages_before, strict=True)),
            recoveries=tuple(self.interruption.recovered),
            place=self.owner.place,
            guessed=self.guesses.n_made,
            guessed_right=self.guesses.n_right,
            guess_runs=self.guesses.n_runs,
            drafted_right=self.guesses.sources[Source.DRAFT],
            guess_took_s=self.guesses.took_s,
            guess_plain_s=self.guesses.plain_s,
            restored_s=timing.restored_s,
        )


def total_replay_s(again: Sequence[SequenceState], paces: Sequence[Pace | None]) -> float | None:
    """Return the seconds needed to recompute these sequences on stages of the same speed.

    Return None if the speed is unknown.
    """
    pace = pace_of(paces)
    return None if pace is None else sum(sequence.replay_s(pace) for sequence in again)


async def stream_items(submit: Callable[[], SequenceState]) -> AsyncGenerator[Token | Notice | Finish, None]:
    """Submit a sequence and yield its items up to and including Finish.

    Closing the generator cancels the sequence: use contextlib.aclosing.
    """
    sequence = submit()
    try:
        while True:
            was_full = sequence.unread.is_full
            item = await sequence.unread.get()
            if was_full:
                sequence.owner.wake()
            yield item
            if isinstance(item, Finish):
                return
    finally:
        if sequence.request.read is not None:
            sequence.request.read(sequence.n_read)
        sequence.owner.leave(sequence)
