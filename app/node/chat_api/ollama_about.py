"""What Ollama's clients are told of models: of each on the shelf, of one, and of those that are loaded. No I/O."""

from __future__ import annotations

import hashlib

import msgspec

from app.core.errors import BadInput
from app.node.chat_api.wish import Json


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """Which model is meant; older clients call it `name`."""

    model: str = ""
    name: str = ""

    def wanted(self) -> str:
        """Raises BadInput."""
        if not (found := (self.model or self.name).removesuffix(":latest")):
            raise BadInput("bad_request", why="model is missing", field="model")
        return found


def listed(model: Json, since: str) -> Json:
    """One of the shelf, or one that an upstream has, of which only the name is known."""
    return {
        "name": model["name"],
        "model": model["name"],
        "modified_at": since,
        "size": model.get("file_bytes") or 0,
        "digest": _digest(model),
        "details": _details(model),
    }


def running(model: Json, context: int) -> Json:
    """One that is loaded. Nobody knows when it goes: whoever loaded it says so."""
    return {
        "name": model["name"],
        "model": model["name"],
        "size": model.get("file_bytes") or 0,
        "digest": _digest(model),
        "details": _details(model),
        "context_length": context,
    }


def shown(model: Json, since: str, *, has_tools: bool, thinks: bool) -> Json:
    """One, with what it can do. Whether it calls tools, and thinks, is known of one that is loaded."""
    family = model.get("architecture") or ""
    can = {
        "completion": model.get("writes", True),
        "tools": has_tools,
        "thinking": thinks,
        "embedding": model.get("embeds"),
    }
    facts = {
        "context_length": "context_length",
        "embedding_length": "width",
        "block_count": "n_layers",
    }
    about = {f"{family}.{name}": model[of] for name, of in facts.items() if of in model}
    return {
        "modified_at": since,
        "license": model.get("licence") or "",
        "details": _details(model),
        "model_info": {"general.architecture": family, **about},
        "capabilities": [name for name, is_so in can.items() if is_so],
    }


def _digest(model: Json) -> str:
    """Of an upstream's only the name is known. Ollama's command line cuts it to twelve letters, and breaks where there
    are fewer."""
    return str(model.get("id") or hashlib.sha256(model["name"].encode()).hexdigest())


def _details(model: Json) -> Json:
    return {
        "format": "gguf",
        "family": model.get("architecture") or "",
        "quantization_level": model.get("quantisation") or "",
    }
