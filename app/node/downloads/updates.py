"""The check for a newer release, which runs on request or, if the owner enables that, once a day.

Only the server named in the build is contacted, never a machine of the household. Nothing is downloaded.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated

import aiohttp
import msgspec
from aiohttp import web
from msgspec import Meta
from packaging.version import InvalidVersion, Version

from app import __version__
from app.api.computer import Updates as UpdatesState
from app.catalog.hub.hub_address import proxy_of, system_tls_context
from app.catalog.hub.hub_files import connection_failure
from app.catalog.transfers.file_transfer import run_to_completion
from app.core.errors import AppError, BadInput, Busy, Reason, Unreachable
from app.decoding import decode
from app.machine.json_state import read_json_or_default
from app.machine.paths import write_atomically
from app.network.traffic_limits import TooLong, TooSlow, whole_body
from app.node.control.json_bodies import answer

log = logging.getLogger(__name__)


DAY_SECONDS = 86_400.0
LOOK_SECONDS = 600.0  # between checks of whether a day has passed
SECONDS = 20.0  # time limit for a response
MOST_BYTES = 1 << 20
AGENT = "poolhouse"  # the service requires a user agent; the version stays private
HOST = "github.com"
LABELS = ("repository", "source", "source code")  # names under project.urls in pyproject.toml, in upper or lower case
_ADDRESS = re.compile(r"https://github\.com/([A-Za-z0-9][A-Za-z0-9-]{0,38})/([A-Za-z0-9._-]{1,100}?)(?:\.git)?/?")


@dataclass(frozen=True, slots=True)
class ReleaseRepository:
    """The repository of the releases, and the URLs of the service that hosts it. Tests use other URLs."""

    repository: str  # OWNER/NAME
    api: str = "https://api.github.com"
    web: str = f"https://{HOST}"

    @property
    def latest(self) -> str:
        """The API URL of the newest release."""
        return f"{self.api}/repos/{self.repository}/releases/latest"

    @property
    def page(self) -> str:
        """The URL of the web page that lists all releases."""
        return f"{self.web}/{self.repository}/releases"

    @property
    def host(self) -> str:
        """Return the host name to show to the user."""
        return self.api.partition("://")[2]


def find_release_repository(urls: Iterable[str]) -> ReleaseRepository | None:
    """Find the release repository among the project URLs in the package metadata (lines such as `Repository,
    https://…`)."""
    for line in urls:
        label, _, address = line.partition(",")
        match = _ADDRESS.fullmatch(address.strip())
        if label.strip().casefold() in LABELS and match and match[2] not in (".", ".."):
            return ReleaseRepository(f"{match[1]}/{match[2]}")
    return None


def release_repository() -> ReleaseRepository | None:
    """Return the release repository of this build, or None if the build does not name one."""
    try:
        return find_release_repository(metadata.metadata("poolhouse").get_all("Project-URL") or ())
    except metadata.PackageNotFoundError:
        return None


class Release(msgspec.Struct, frozen=True):
    """The newest release as described by the hosting service. Unknown fields are ignored."""

    tag_name: Annotated[str, Meta(min_length=1, max_length=100)]
    html_url: Annotated[str, Meta(max_length=500)] = ""


class SavedCheck(msgspec.Struct, frozen=True):
    """The saved result of the last check."""

    asked: float = 0.0  # Unix time of the last contact
    version: Annotated[str, Meta(max_length=100)] = ""  # "" if none is published
    page: Annotated[str, Meta(max_length=500)] = ""
    noted: Annotated[str, Meta(max_length=100)] = ""  # the version already reported in the journal


class Updates:
    """Checks `place` for a newer release. `place` is None if the build does not name a release repository."""

    def __init__(
        self,
        file: Path,
        place: ReleaseRepository | None,
        daily: Callable[[], bool],
        note: Callable[[Reason], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._file, self.place, self._daily, self._note, self._now = file, place, daily, note, now
        self._kept = read_json_or_default(file, SavedCheck, "the last check for updates")
        self._asking = asyncio.Lock()

    async def run(self) -> None:
        """Check once a day until canceled, while the owner has enabled it."""
        while True:
            if self.is_due():
                try:
                    await self.check()
                except AppError as error:
                    log.info("the check for updates failed: %s", error.reason)
            await asyncio.sleep(LOOK_SECONDS)

    def is_due(self) -> bool:
        """Return whether a daily check is due. A check is always due if the clock was set back."""
        if self.place is None or not self._daily():
            return False
        return not 0 <= self._now() - self._kept.asked < DAY_SECONDS

    def state(self) -> UpdatesState:
        """Return the newest known version and the time of the last check."""
        kept, place = self._kept, self.place
        return UpdatesState(
            place=f"{place.host}/{place.repository}" if place else None,
            daily=self._daily(),
            last_contact=kept.asked or None,
            version=kept.version or None,
            newer=_is_newer(kept.version),
            page=kept.page or None,
        )

    async def check(self) -> UpdatesState:
        """Check now. Raises AppError."""
        place = self.place
        if place is None:
            raise BadInput("updates_no_place")
        async with self._asking:
            await self._keep(msgspec.structs.replace(self._kept, asked=self._now()))
            release = await _newest(place)
            version, page = _version(release, place), _page(release, place)
            await self._keep(msgspec.structs.replace(self._kept, version=version, page=page))
            if _is_newer(version) and self._kept.noted != version:
                self._note(Reason("log_node_newer", {"version": version}))
                await self._keep(msgspec.structs.replace(self._kept, noted=version))
        return self.state()

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of the loopback API."""

        async def state(_: web.Request) -> web.Response:
            return answer(self.state())

        async def check(_: web.Request) -> web.Response:
            return answer(await self.check())

        return [web.get("/updates", state), web.post("/updates", check)]

    async def _keep(self, kept: SavedCheck) -> None:
        """Save the result to disk. If that fails, keep it in memory only."""
        self._kept = kept
        try:
            content = msgspec.json.encode(kept)
            await run_to_completion(lambda: write_atomically(self._file, content))
        except OSError as error:
            log.warning("the result of the check for updates could not be saved: %s", error)


async def _newest(place: ReleaseRepository) -> Release | None:
    """Return the newest release, or None if none is published. Raises AppError."""
    source = place.host
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=system_tls_context()),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=SECONDS),
        headers={"User-Agent": AGENT, "Accept": "application/vnd.github+json"},
        trust_env=False,
    )
    try:
        async with session, session.get(place.latest, allow_redirects=False, proxy=proxy_of(place.latest)) as answer:
            if answer.status == 404:
                return None
            if answer.status in (403, 429):
                raise Busy("hub_busy", source=source)
            if answer.status != 200:
                raise Unreachable("hub_fault", source=source, status=answer.status)
            body = await whole_body(answer.content, answer.content_length, MOST_BYTES)
            return decode(body, Release)
    except (aiohttp.ClientError, OSError, TooSlow) as error:
        raise Unreachable("updates_unreached", source=source, why=connection_failure(error)) from error
    except (TooLong, ValueError) as error:
        raise Unreachable("hub_odd", source=source) from error


def _version(release: Release | None, place: ReleaseRepository) -> str:
    """Return the release's version in normalized form, or "" if `release` is None. Raises Unreachable."""
    if release is None:
        return ""
    try:
        return str(Version(release.tag_name))
    except InvalidVersion:
        raise Unreachable("hub_odd", source=place.host) from None


def _page(release: Release | None, place: ReleaseRepository) -> str:
    """Return the URL of the release if it is on the expected site, otherwise the page of all releases."""
    theirs = release.html_url if release else ""
    return theirs if theirs.startswith(f"{place.page}/") else place.page


def _is_newer(version: str) -> bool:
    try:
        return bool(version) and Version(version) > Version(__version__)
    except InvalidVersion:  # the file was edited by hand
        return False
