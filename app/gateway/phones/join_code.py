"""The one-time code with which a phone or tablet joins."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable

DIGITS = 8
CODE_SECONDS = 300.0
MAX_WRONG_TRIES = 5


class JoinCode:
    """The one code that is valid, if any. It is void once it was used, has expired, or was missed too often.

    With 8 digits and 5 tries, a stranger on the network guesses one code in twenty million.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._code, self._expires_at, self._n_wrong = "", 0.0, 0

    def make(self) -> str:
        """Return a new code. Any earlier one is void."""
        self._code = f"{secrets.randbelow(10**DIGITS):0{DIGITS}}"
        self._expires_at, self._n_wrong = self._clock() + CODE_SECONDS, 0
        return self._code

    def clear(self) -> None:
        """Make the code void."""
        self._code = ""

    def seconds_left(self) -> float:
        """Return how long the code is valid, or 0 if there is none."""
        return max(0.0, self._expires_at - self._clock()) if self._code else 0.0

    def use(self, presented: str) -> bool:
        """Return whether this is the code, and use it up if so. The comparison takes constant time."""
        if not self.seconds_left():
            self.clear()
            return False
        digits = "".join(presented.split())  # people type it in two groups
        if hmac.compare_digest(digits.encode("utf-8", "replace"), self._code.encode()):
            self.clear()
            return True
        self._n_wrong += 1
        if self._n_wrong >= MAX_WRONG_TRIES:
            self.clear()
        return False
