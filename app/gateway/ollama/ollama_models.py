"""What Ollama's clients are told of models: of each on the shelf, of one, and of those that are loaded. No I/O."""

from __future__ import annotations

import hashlib

import msgspec

from app.core.errors import BadInput
from app.gateway.api_request import USUAL, Json
from app.gateway.model_cards import ModelCard

USUAL_OPTIONS = {
    name: getattr(USUAL, name) for name in ("temperature", "top_k", "top_p", "min_p", "repeat_penalty", "repeat_last_n")
}


class ShowRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which model is meant; older clients call it `name`."""

    model: str = ""
    name: str = ""

    def wanted(self) -> str:
        """Raises BadInput."""
        if not (found := (self.model or self.name).removesuffix(":latest")):
            raise BadInput("bad_request", why="model is missing", field="model")
        return found


def listed(model: Json, modified: str) -> Json:
    """One of the shelf, or one that an upstream has, of which only the name is known."""
    return {
        "name": model["name"],
        "model": model["name"],
        "modified_at": modified,
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


def shown(model: Json, card: ModelCard | None, since: str, context: int | None) -> Json:
    """One, with what it can do. `context`: of a conversation, where it is loaded."""
    family = model.get("architecture") or ""
    can = {
        "completion": model.get("writes", True),
        "tools": card is not None and card.has_tools,
        "thinking": card is not None and card.thinks,
        "embedding": model.get("embeds"),
    }
    facts = {"context_length": "context_length", "embedding_length": "width", "block_count": "n_layers"}
    about = {f"{family}.{name}": model[of] for name, of in facts.items() if of in model}
    if count := model.get("n_parameters"):
        about["general.parameter_count"] = count
    entries = dict(card.card.entries) if card is not None else {}
    return {
        "modified_at": card.modified if card is not None else since,
        "license": model.get("licence") or "",
        "modelfile": f"FROM {model['name']}\n",
        "parameters": _parameters(context),
        "template": card.card.template if card is not None else "",
        "details": _details(model),
        "model_info": {"general.architecture": family, **entries, **about},
        "capabilities": [name for name, is_so in can.items() if is_so],
    }


def _parameters(context: int | None) -> str:
    """What an answer has where its request says nothing, a line each, as Ollama writes them."""
    usual = USUAL_OPTIONS if context is None else {"num_ctx": context, **USUAL_OPTIONS}
    return "\n".join(f"{name:<30} {value:g}" for name, value in usual.items())


def parameter_size(count: int) -> str:
    """A number of weights as Ollama writes it: 134.52M, 8.0B, 70B."""
    if not count:
        return ""
    for least, letter, digits in ((10**9, "B", 1), (10**6, "M", 2), (10**3, "K", 0)):
        if count >= least:
            whole, rest = divmod(count, least)
            return f"{whole}{letter}" if not rest else f"{count / least:.{digits}f}{letter}"
    return str(count)


def _digest(model: Json) -> str:
    """Of an upstream's only the name is known. Ollama's command line cuts it to twelve letters, and breaks where there
    are fewer."""
    return str(model.get("id") or hashlib.sha256(model["name"].encode()).hexdigest())


def _details(model: Json) -> Json:
    return {
        "parent_model": "",
        "format": "gguf",
        "family": (family := model.get("architecture") or ""),
        "families": [family] if family else [],
        "parameter_size": parameter_size(model.get("n_parameters") or 0),
        "quantization_level": model.get("quantisation") or "",
    }
