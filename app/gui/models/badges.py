"""The badges of a model in the list: its abilities, its number of languages, and its license.

They are based on the catalog or the model's file. Nothing is inferred from a model's name.
"""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QLocale

from app.api.models import CatalogModel, FoundFile, HubModel, ShelfModel
from app.gui.look import formats
from app.gui.models.model_item import ModelItem

translate = QCoreApplication.translate
MOST_CHARACTERS = 24  # of a license, which comes from the file
MOST_NAMED = 12  # languages that are named one by one

# where Qt names the variant of one country, such as "American English"
NAMES = {"en": "English", "es": "español", "pt": "português", "zh": "中文"}
# names of licenses in model files, in the spelling of the catalog
LICENSES = {
    "apache-2.0": "Apache-2.0",
    "mit": "MIT",
    "gemma": "Gemma Terms of Use",
    "llama3.1": "Llama 3.1 Community",
    "llama3.2": "Llama 3.2 Community",
    "llama3.3": "Llama 3.3 Community",
    "llama4": "Llama 4 Community",
    "lfm1.0": "LFM Open License v1.0",
}


def badges(item: ModelItem) -> list[str]:
    """Return the badges of a model, the most informative first."""
    facts = item.facts
    match facts:
        case CatalogModel():
            tools, thinks = "tools" in facts.good_at, "thinking" in facts.good_at
            many = facts.n_languages or (0 if "languages" not in facts.good_at else None)
        case ShelfModel():
            tools, thinks, many = facts.tools, facts.thinks, len(facts.languages)
        case _:
            tools, thinks, many = False, False, 0
    names = [translate("Models", "Completes text")] if item.is_base else []
    names += [translate("Models", "Pictures")] if isinstance(facts, ShelfModel) and facts.vision else []
    names += [translate("Models", "Tools")] if tools else []
    names += [translate("Models", "Thinking")] if thinks else []
    if many is None:
        names.append(translate("Models", "Many languages"))
    elif many > 1:
        names.append(translate("Models", "{count} languages").format(count=formats.number(many)))
    license_name = license_of(item)
    return [*names, license_name] if 0 < len(license_name) <= MOST_CHARACTERS else names


def license_of(item: ModelItem) -> str:
    """Return the name of a model's license in the catalog's spelling, or "" if the license is unknown."""
    facts = item.facts
    stated = "" if isinstance(facts, FoundFile) else facts.license or ""
    return LICENSES.get(stated.casefold(), stated)


def license_words(name: str) -> str:
    """Return a plain explanation of what a license allows, or "" if the license is unknown."""
    match name:
        case "Apache-2.0" | "MIT":
            return translate("Models", "Free for any use, including at work.")
        case "Modified MIT":
            return translate("Models", "Free for any use. Very large services must show the model's name.")
        case "Gemma Terms of Use":
            return translate("Models", "Free, including at work, for uses that Google's terms allow.")
        case "LFM Open License v1.0":
            return translate("Models", "Free, except for companies with a revenue above 10 million dollars a year.")
        case _ if name.startswith("Llama") and name.endswith("Community"):
            return translate("Models", "Free, including at work, except for services with more than 700 million users.")
    return ""


def languages_words(item: ModelItem) -> str:
    """Return the names or the number of the languages that a model knows, or "" if they are unknown."""
    facts = item.facts
    if isinstance(facts, ShelfModel) and facts.languages:
        return language_names(facts.languages)
    if isinstance(facts, CatalogModel) and facts.n_languages:
        return translate("Models", "{count} languages, according to its maker").format(
            count=formats.number(facts.n_languages)
        )
    if isinstance(facts, CatalogModel) and "languages" in facts.good_at:
        return translate("Models", "Many languages")
    return ""


def language_names(codes: list[str]) -> str:
    """Return each language's name in that language, such as `English, Deutsch, français`."""
    names = [NAMES.get(code) or QLocale(code).nativeLanguageName() or code for code in codes]
    named = ", ".join(names[:MOST_NAMED])
    more = len(names) - MOST_NAMED
    if more <= 0:
        return named
    return translate("Models", "{names} and {count} more").format(names=named, count=formats.number(more))


def good_at_words(item: ModelItem) -> str:
    """Return what a catalog model was made for, or what a model file's chat template supports."""
    words = {
        "chat": translate("Models", "conversation"),
        "code": translate("Models", "programming"),
        "tools": translate("Models", "using tools"),
        "thinking": translate("Models", "thinking before it answers"),
        "languages": translate("Models", "many languages"),
        "small": translate("Models", "small computers"),
        "long texts": translate("Models", "long texts"),
    }
    facts = item.facts
    match facts:
        case CatalogModel():
            return ", ".join(words[name] for name in facts.good_at if name in words)
        case ShelfModel() if not facts.builtin and not facts.is_base:
            able = [name for name, has in (("tools", facts.tools), ("thinking", facts.thinks)) if has]
            return ", ".join(words[name] for name in able)
    return ""


def maker_of(item: ModelItem) -> str:
    """Return the maker of a model, or "" if unknown."""
    facts = item.facts
    return facts.maker if isinstance(facts, CatalogModel | HubModel | ShelfModel) else ""
