"""Which folder of downloaded models the owner chose, and what is still to be brought there."""

from __future__ import annotations

from typing import Literal

import msgspec


class ModelsChoice(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of the folder in the home nothing needs to be written down."""

    path: str = ""  # of the chosen folder; "": the one in the home
    former: tuple[str, ...] = ()  # folders chosen before that may still hold models
    owner: str = ""  # what the marker in each of our folders says
    moving: Literal["", "parts", "all"] = ""  # a move that goes on after a restart


UNCHOSEN = ModelsChoice()
