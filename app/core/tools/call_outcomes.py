"""The outcome of a tool call as the model reads it, and the limits of a conversation with tools."""

from __future__ import annotations

MAX_ROUNDS = 10  # times in a row that a model may call tools before the person is asked
DENIED = "The user did not allow this call."
UNKNOWN = "There is no tool with this name."
STOPPED = "This call was not made."
INTERRUPTED = "This call was stopped before its result came. It may have been carried out."


def outcome_text(text: str, *, is_error: bool = False, n_pictures: int = 0, n_left_out: int = 0) -> str:
    """Return a tool's answer for the model, with a note about anything that was left out."""
    parts = [f"Error: {text}" if is_error else text]
    if n_left_out:
        parts.append(f"[{n_left_out} more characters were left out]")
    if n_pictures:
        parts.append(f"[{n_pictures} pictures or other files were left out]")
    return "\n".join(filter(None, parts)) or "(empty)"


def bounded(text: str, most: int) -> tuple[str, int]:
    """Return the beginning of a text, and the number of characters left out."""
    return text[:most], max(0, len(text) - most)
