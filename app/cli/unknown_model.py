"""What is said of a model that is not on the shelf, where the catalogue has it or where it is a file."""

from __future__ import annotations

from contextlib import suppress

from app.core.errors import AppError, BadInput
from app.core.reasons import in_words, said


def unknown_model(error: AppError) -> str:
    """The sentence for an error, with the command that helps who named a model that is not here."""
    if error.reason.code != "model_unknown":
        return said(error)
    name = str(error.reason.facts.get("name", ""))
    if name.casefold().endswith(".gguf"):  # as llama.cpp's own programs take it
        return said(error) + " A file is put on the shelf first: `poolhouse import FILE`."
    with suppress(BadInput):  # a list that is damaged: the shelf's own words stay
        return _offered(name) or said(error)
    return said(error)


def _offered(name: str) -> str:
    """ "" where the catalogue has none of this name either."""
    from app.catalog.catalogue import shipped

    try:
        offer, file = shipped().named(name)
    except BadInput as odd:
        if odd.reason.code != "catalogue_ambiguous" or not name:
            return ""
        return in_words("models_not_pulled", name=name, there=odd.reason.facts["there"])
    pulled = offer.id if file.recommended else f"{offer.id}:{file.quantisation}"
    return in_words("model_not_pulled", model=pulled)
