"""Where to go, for who asked where nothing is or showed no key that opens: words of the gate. No I/O."""

from __future__ import annotations

from collections.abc import Collection

NO_KEY_SHOWN = (
    "The request shows no API key. Send it in the header `Authorization: Bearer KEY`, or `X-Api-Key: KEY`; "
    "`poolhouse api key` shows it."
)
WRONG_KEY = (
    "Invalid API key: it was typed wrongly or cut short, was replaced, or belongs to another Poolhouse. "
    "`poolhouse api key` shows the valid one."
)
SHELF = frozenset({"/api/pull", "/api/create", "/api/copy", "/api/delete", "/api/push"})  # Ollama's


def nothing_at(method: str, path: str, known: Collection[str]) -> str:
    """`known`: the paths at which something is."""
    begun = f"There is nothing at {method} {path[:100]}"
    if path in SHELF:
        cure = "`poolhouse pull NAME` or `poolhouse import FILE.gguf` adds one"
        return f"{begun}: programs change no models here. {cure}."
    parts = [part for part in path.split("/") if part]
    bare = "/" + "/".join(parts)
    rest = "/" + "/".join(part for part in parts if part != "v1")
    for meant in (bare, "/v1" + rest, rest):
        if meant != "/" and meant in known:
            of_base = "" if meant == bare else (
                " An address for OpenAI's clients ends with /v1, one for Anthropic's or Ollama's without it."
            )  # fmt: skip
            return f"{begun}, but at {meant}.{of_base}"
    return f"{begun}. GET /openapi.json lists what there is."
