"""Names for a machine that nobody has named: a generated name, and one derived from its host name."""

from __future__ import annotations

import re

from app.core.ids import MAX_NAME_CHARACTERS, NO_NAME, clean_name

ANIMALS = ("otter", "heron", "badger", "finch", "hare", "newt", "robin", "vole", "wren", "lynx")
N_GENERATED = 900 * len(ANIMALS)  # each animal with a number of three digits
_GENERATED = re.compile(rf"(?:{'|'.join(ANIMALS)})-[1-9][0-9]{{2}}")
_FACTORY = re.compile(r"(desktop|laptop|win)-[0-9a-z]{5,}", re.IGNORECASE)  # as Windows names a new computer
_SERIAL = re.compile(r"[0-9a-f]{12,}|(?:ip-)?\d+(?:[.-]\d+){3}(?:\.\S*)?", re.IGNORECASE)  # a container or an address
_WORDS_IN_CAPITALS = frozenset({"pc", "nas", "tv", "nuc", "htpc"})
# names that installers give to every computer
_ANYBODY = frozenset({"localhost", "debian", "ubuntu", "fedora", "arch", "linux", "computer", "host", "pc", "unknown"})


def generated_name(chance: int) -> str:
    """Return a name that says nothing about the owner of the machine. `chance` is a random number below N_GENERATED."""
    return f"{ANIMALS[chance // 900]}-{chance % 900 + 100}"


def is_generated(name: str) -> bool:
    """Return whether nobody has chosen this name."""
    return _GENERATED.fullmatch(name) is not None


def friendly_name(host: str) -> str:
    """Return a host's name as a person would write it, such as `Kitchen PC`, or "" if it names no particular machine.

    The domain is dropped, separators become spaces, and words without capitals begin with one.
    """
    first = host.strip().partition(".")[0]
    if (factory := _FACTORY.fullmatch(first)) is not None:
        kind = factory.group(1).casefold()
        return "Windows PC" if kind == "win" else kind.capitalize()
    if first.casefold() in _ANYBODY or _SERIAL.fullmatch(host.strip()) is not None:
        return ""
    name = clean_name(" ".join(_word(word) for word in re.split(r"[-_\s]+", first) if word))
    return "" if name == NO_NAME else name[:MAX_NAME_CHARACTERS]


def _word(word: str) -> str:
    if word.casefold() in _WORDS_IN_CAPITALS:
        return word.upper()
    return word[:1].upper() + word[1:] if word.islower() else word
