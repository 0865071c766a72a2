"""The place where this copy of Poolhouse says its releases are published: the repository named in its build."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata

HOST = "github.com"
LABELS = ("repository", "source", "source code")  # of pyproject's project.urls, whatever their case
_ADDRESS = re.compile(r"https://github\.com/([A-Za-z0-9][A-Za-z0-9-]{0,38})/([A-Za-z0-9._-]{1,100}?)(?:\.git)?/?")


@dataclass(frozen=True, slots=True)
class ReleasePlace:
    """A repository, and the addresses of the service that it is on; other ones in tests."""

    repository: str  # OWNER/NAME
    api: str = "https://api.github.com"
    web: str = f"https://{HOST}"

    @property
    def latest(self) -> str:
        """Return the address of the newest release."""
        return f"{self.api}/repos/{self.repository}/releases/latest"

    @property
    def page(self) -> str:
        """Return the page of all releases, for people."""
        return f"{self.web}/{self.repository}/releases"

    @property
    def host(self) -> str:
        """Return the host that people are shown."""
        return self.api.partition("://")[2]


def place_in(urls: Iterable[str]) -> ReleasePlace | None:
    """Return the place in the project's URLs: lines as the built package has them, `Repository, https://…`."""
    for line in urls:
        label, _, address = line.partition(",")
        match = _ADDRESS.fullmatch(address.strip())
        if label.strip().casefold() in LABELS and match and match[2] not in (".", ".."):
            return ReleasePlace(f"{match[1]}/{match[2]}")
    return None


def named() -> ReleasePlace | None:
    """The place of this copy; None: its build names none, so there is nobody to ask."""
    try:
        return place_in(metadata.metadata("poolhouse").get_all("Project-URL") or ())
    except metadata.PackageNotFoundError:
        return None
