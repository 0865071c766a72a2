"""An answer that moves between the pool and another server in the middle, with its text kept.

To a server, the rendered prompt and the text so far are sent as one text to complete, so it goes on in mid-word. To
the pool, the text so far is the beginning of the assistant's last message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from app.api.plans import Notice
from app.gateway.api_request import (
    NO_LIMIT,
    THOUGHT,
    AnswerEnd,
    ApiRequest,
    CallArguments,
    CallDone,
    CallStart,
    CollectedAnswer,
    Piece,
)
from app.gateway.upstreams.upstream_dialect import upstream_obstacle

# Fields of a request for a chat that also hold for a text to complete.
SAMPLING_FIELDS = frozenset(
    {
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "repeat_penalty",
        "repeat_last_n",
        "presence_penalty",
        "frequency_penalty",
        "seed",
    }
)


@dataclass(slots=True)
class Handover:
    """Everything needed to continue an answer elsewhere: its request, its rendered prompt, and its text so far."""

    request: ApiRequest
    model: str = ""  # the pool's name of the model that answers
    n_tokens: int = 0
    _prompt: str = ""
    _markers: Sequence[str] = ()
    _answer: CollectedAnswer = field(default_factory=CollectedAnswer)
    _has_calls: bool = False

    def note_prompt(self, model: str, prompt: str, markers: Sequence[str]) -> None:
        """Keep the prompt as the model's chat template rendered it, and the texts of the model's control tokens."""
        self.model, self._prompt, self._markers = model, prompt, markers

    def add(self, piece: Piece, n_tokens: int = 1) -> None:
        """Keep the next piece of the answer."""
        self.n_tokens += n_tokens
        self._has_calls |= isinstance(piece, CallStart | CallArguments | CallDone)
        self._answer.add(piece)

    @property
    def text(self) -> str:
        """Return the text of the answer so far."""
        return self._answer.text

    @property
    def thought(self) -> str:
        """Return what the model has thought so far."""
        return "".join(self._answer.thoughts)

    @property
    def is_begun(self) -> bool:
        """Return whether anything was written."""
        return bool(self.text or self.thought or self._has_calls)

    def for_server(self) -> ApiRequest | None:
        """Return the request that makes another server continue, or None if none could continue this answer.

        None could continue a thought, tool calls, an answer in a given form, or log probabilities. A text that spells
        a control token is not sent, because the server would read it as one.
        """
        request = self.request
        if upstream_obstacle(request):
            return None
        if not self.is_begun:
            return request
        has_form = bool(request.tools) or request.schema is not None or request.sampling.likely is not None
        spells_token = any(marker in self.text for marker in self._markers)
        if has_form or self.thought or self._has_calls or spells_token:
            return None
        prompt = self._prompt if request.messages is not None else request.prompt
        if not prompt or not isinstance(prompt, str):
            return None
        return replace(
            request,
            messages=None,
            prompt=prompt + self.text,
            max_tokens=self._left(),
            extra_fields={name: value for name, value in request.extra_fields.items() if name in SAMPLING_FIELDS},
        )

    def for_pool(self) -> ApiRequest | None:
        """Return the request that makes the pool continue, or None if a tool call was begun."""
        request = self.request
        if self._has_calls or (request.schema is not None and self.text):
            return None
        if not self.is_begun:
            return request
        if request.messages is None:
            if not isinstance(request.prompt, str):
                return None
            return replace(request, prompt=request.prompt + self.text, max_tokens=self._left())
        begun = {"role": "assistant", "content": self.text, **({THOUGHT: self.thought} if self.thought else {})}
        return replace(request, messages=(*request.messages, begun), max_tokens=self._left())

    def has_to_wait(self, part: object) -> bool:
        """Return whether the pool reports with this part that no plan is left and that it waits for memory."""
        return isinstance(part, Notice) and part.state == "short" and self.for_server() is not None

    def joined(self, end: AnswerEnd) -> AnswerEnd:
        """Return the end of the whole answer: the tokens before the handover were answer and not prompt."""
        return replace(
            end,
            prompt_tokens=max(0, end.prompt_tokens - self.n_tokens),
            answer_tokens=end.answer_tokens + self.n_tokens,
        )

    def _left(self) -> int | None:
        most = self.request.max_tokens
        return most if most in (None, NO_LIMIT) else max(1, most - self.n_tokens)
