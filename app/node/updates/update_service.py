"""The updates of this computer: manual and daily checks, installation in the background, restart and rollback.

Updates come from the address in the build or from a folder, never from another machine of the household. Files from a
machine could be verified as well, but only the address shows which version is the newest.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from app import launcher
from app.api.computer import AskedMachines
from app.api.computer import Updates as UpdatesState
from app.catalog.transfers.file_transfer import run_to_completion
from app.core.errors import AppError, BadInput, Busy, Reason, Refused
from app.core.reasons import sentence
from app.machine.versions.layer_archive import Canceled
from app.machine.versions.version_store import VersionStore, why_not_started
from app.node.updates.check_record import CheckRecord, read_record, write_record
from app.node.updates.household_updates import HouseholdUpdates
from app.node.updates.release import Release, not_understanding, warning
from app.node.updates.updater import Offer, Updater

if TYPE_CHECKING:
    from app.node.updates.sources import Source

log = logging.getLogger(__name__)

DAY_SECONDS = 86_400.0
LOOK_SECONDS = 600.0  # between checks of whether a day has passed
HEALTHY_SECONDS = 5.0  # a node that runs so long has started well


class UpdateService:
    """Checks for, installs and starts updates.

    members: returns the protocol of each other machine of the household, by name.
    """

    def __init__(
        self,
        file: Path,
        updater: Updater,
        daily: Callable[[], bool],
        note: Callable[[Reason], None],
        *,
        machine: Callable[[], str] = lambda: "",
        members: Callable[[], Mapping[str, int]] = dict,
        household: HouseholdUpdates | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._file, self._updater, self._daily, self._note, self._now = file, updater, daily, note, now
        self._machine, self._members, self._household = machine, members, household
        self._asking = asyncio.Lock()
        self._group: asyncio.TaskGroup
        self._task: asyncio.Task[None] | None = None
        self._stop = threading.Event()
        self._done_bytes = self._total_bytes = 0
        self._error: AppError | None = None
        self._phase = ""

    async def run(self) -> None:
        """Report a newer version that failed to start, record that this one started well, and check for updates
        once a day if the owner enabled that. Runs until canceled.
        """
        await self._report_failures()
        healthy = asyncio.get_running_loop().call_later(HEALTHY_SECONDS, self._mark_started)
        try:
            async with asyncio.TaskGroup() as self._group:
                while True:
                    if self.is_due():
                        try:
                            await self.check()
                        except AppError as error:
                            log.info("the check for updates failed: %s", error.reason)
                        except Exception:  # answers and lending must not end with it
                            log.exception("the check for updates failed")
                    await asyncio.sleep(LOOK_SECONDS)
        finally:
            healthy.cancel()

    def is_due(self) -> bool:
        """Return whether a daily check is due. A check is always due if the clock was set back."""
        if not self._updater.build.address or not self._daily():
            return False
        return not 0 <= self._now() - self._kept().last_contact < DAY_SECONDS

    def state(self) -> UpdatesState:
        """Return the newest known version, the possible actions, and the progress of an installation."""
        kept, store = self._kept(), self._updater.store
        release = kept.release
        obstacle = self._updater.obstacle()
        ready = store.next_version() if store else ""
        previous = store.previous_version() if store else None
        caution = self._caution(release) if release else None
        notice = self._rolled_back(store)
        wish = self._household.wish if self._household else None
        error = self._error.reason if self._error else None
        return UpdatesState(
            place=self._place(),
            daily=self._daily(),
            last_contact=kept.last_contact or None,
            own=self._updater.own,
            version=release.version if release else None,
            newer=release is not None and launcher.is_newer(release.version, self._updater.own),
            date=release.date if release else "",
            changes=release.changes if release else "",
            download_bytes=kept.download_bytes,
            staged=kept.staged,
            can_install=obstacle is None,
            cannot=sentence(obstacle.reason) if obstacle else None,
            cannot_facts=obstacle.reason if obstacle else None,
            phase=self._phase,
            done_bytes=self._done_bytes,
            total_bytes=self._total_bytes,
            ready=ready if ready and ready != self._updater.own else None,
            previous=previous,
            asked_by=wish.machine if wish else "",
            asked_version=wish.version if wish else "",
            warning=sentence(caution),
            warning_facts=caution,
            protocols=dict(self._members()),
            notice=sentence(notice),
            notice_facts=notice,
            error=sentence(error),
            error_facts=error,
        )

    async def check(self) -> UpdatesState:
        """Check for updates now. Raises AppError."""
        source = await self._source("")
        async with self._asking:
            await self._keep(msgspec.structs.replace(self._kept(), last_contact=self._now()))
            stop = threading.Event()
            offer = await run_to_completion(lambda: self._updater.find(source, self._machine(), stop=stop), stop.set)
            await self._remember(offer)
        return self.state()

    async def install(self, folder: str = "", *, anyway: bool = False) -> UpdatesState:
        """Start installing the newest version in the background, from a folder or from the address. Raises
        AppError.

        anyway: install from a folder even if machines of the household could not communicate with the new version.
        """
        if (obstacle := self._updater.obstacle()) is not None:
            raise obstacle
        source = await self._source(folder)
        if self._task is not None and not self._task.done():
            raise Busy("update_busy")
        self.answer_wish()
        self._stop = threading.Event()
        self._error, self._phase, self._done_bytes, self._total_bytes = None, "looking", 0, 0
        work = self._install_folder(source, anyway) if folder else self._install_shown(source)
        self._task = self._group.create_task(self._install(work), name="install an update")
        return self.state()

    async def cancel(self) -> UpdatesState:
        """Stop an installation. The downloaded bytes are kept for the next try."""
        self._stop.set()
        if self._task is not None:
            await asyncio.wait({self._task})
        return self.state()

    async def roll_back(self) -> UpdatesState:
        """Select the previous version for the next start. Raises AppError."""
        await run_to_completion(self._updater.roll_back)
        return self.state()

    def answer_wish(self) -> UpdatesState:
        """Forget the request of another machine to update, because the owner has answered it."""
        if self._household is not None:
            self._household.answered()
        return self.state()

    async def ask_household(self) -> AskedMachines:
        """Ask the owners of all connected machines to update to the newest version known here. Raises AppError."""
        release, store = self._kept().release, self._updater.store
        known = [self._updater.own, store.next_version() if store else "", release.version if release else ""]
        newest = max(known, key=launcher.parts_of)
        if self._household is None:
            return AskedMachines()
        return await self._household.ask(newest)

    def require_ready(self) -> None:
        """Raise Refused if a restart would start the same version again."""
        if self.state().ready is None:
            raise Refused("update_none_ready")

    async def _install(self, work: Coroutine[Any, Any, None]) -> None:
        """Run an installation, and save its error so that the window can show it."""
        try:
            await work
        except Canceled:
            log.info("the update was canceled")
        except AppError as error:
            log.warning("the update failed: %s", error.reason)
            self._error = None if self._stop.is_set() else error
        except Exception as error:  # answers and lending must not end with it
            log.exception("the update failed")
            self._error = AppError("system_error", detail=str(error) or type(error).__name__)
        finally:
            self._phase = ""

    async def _install_folder(self, source: Source, anyway: bool) -> None:
        """Install the newest version in a folder. Unless `anyway` is set, raises Refused with the warning about
        it, which the user has not seen yet.
        """
        offer = await self._find(source, "")
        caution = self._caution(offer.release)
        if caution is not None and not anyway:
            raise Refused(caution.code, **caution.facts)
        await self._fetch(offer)

    async def _install_shown(self, source: Source) -> None:
        """Install the version whose size, changes and warning the user has seen. Raises Refused if a different
        version is offered now.
        """
        shown = self._kept().release
        offer = await self._find(source, self._machine())
        if shown is not None and shown.version != offer.release.version:
            await self._remember(offer)
            raise Refused("update_changed", version=offer.release.version)
        await self._fetch(offer)

    async def _find(self, source: Source, machine: str) -> Offer:
        stop = self._stop
        offer = await run_to_completion(lambda: self._updater.find(source, machine, stop=stop), stop.set)
        if offer is None:
            raise Refused("update_same", version=self._updater.own)
        return offer

    async def _fetch(self, offer: Offer) -> None:
        self._phase = "downloading" if offer.download_bytes else "installing"
        self._total_bytes = offer.download_bytes
        await run_to_completion(lambda: self._updater.install(offer, self._tell, self._stop), self._stop.set)

    def _caution(self, release: Release) -> Reason | None:
        """Return a warning that names the connected machines that could not communicate with a release, or None."""
        return warning(not_understanding(release, self._members()), release.version)

    def _tell(self, done: int, total: int) -> None:
        self._done_bytes, self._total_bytes = done, total
        if done == total:
            self._phase = "installing"

    async def _remember(self, offer: Offer | None) -> None:
        record = self._kept().with_offer(offer)
        if record.release is not None and record.is_news(self._updater.own):
            self._note(Reason("log_node_newer", {"version": record.release.version}))
            record = msgspec.structs.replace(record, noted=record.release.version)
        await self._keep(record)

    async def _report_failures(self) -> None:
        """Report a version that failed to start in the journal, but only once."""
        notice, kept = self._rolled_back(self._updater.store), self._kept()
        if notice is not None and kept.failed != notice.facts["version"]:
            self._note(notice)
            await self._keep(msgspec.structs.replace(kept, failed=str(notice.facts["version"])))

    def _rolled_back(self, store: VersionStore | None) -> Reason | None:
        """Return a notice that a newer version failed to start, or None."""
        failures = store.failures() if store else {}
        newer = [version for version in failures if launcher.is_newer(version, self._updater.own)]
        if not newer:
            return None
        why = why_not_started(failures[newer[-1]])
        return Reason("update_rolled_back", {"version": newer[-1], "why": why, "own": self._updater.own})

    def _mark_started(self) -> None:
        if self._updater.store is not None:
            self._updater.store.mark_started(self._updater.own, launcher.NODE)

    def _place(self) -> str | None:
        try:
            return self._updater.build.host or None
        except AppError:
            return None

    async def _source(self, folder: str) -> Source:
        """Return the repository in a folder, or that of this build. Raises BadInput."""

        def opened() -> Source | None:
            from app.node.updates.sources import FolderSource

            return FolderSource(Path(folder)) if folder else self._updater.build.source()

        source = await asyncio.to_thread(opened)  # the first time, this imports the client
        if source is None:
            raise BadInput("updates_no_place")
        return source

    def _kept(self) -> CheckRecord:
        """Return the result of the last check, which the command line may have made."""
        return read_record(self._file)

    async def _keep(self, record: CheckRecord) -> None:
        """Save the result of a check to disk. An error is only logged."""
        try:
            await run_to_completion(lambda: write_record(self._file, record))
        except OSError as error:
            log.warning("the result of the check for updates could not be saved: %s", error)
