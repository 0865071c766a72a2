"""Rows of the matrix that tests without a household of processes prove: where they are, and how they went."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.faults.outcome import Outcome

ROOT = Path(__file__).parents[2]
PHASE = "tests"
SECONDS = 900.0  # for all tests of one row


@dataclass(frozen=True, slots=True)
class Proof:
    """Tests of one row, as pytest takes them: a file, or a file and a name."""

    row: str  # of SAFETY.md 9
    what: str
    where: tuple[str, ...]

    @property
    def kind(self) -> tuple[str, str, str]:
        return self.row, self.what, PHASE


PROOFS = (
    Proof("F8", "clocks that jump by a day or ten years under answers", (
        "tests/simulation/test_simulation.py::test_what_is_no_fault_has_no_effect",
        "tests/node/test_wall_clock.py",
    )),
    Proof("F10", "a disk that is full at 5, 50 or 99 %, an fsync that fails", (
        "tests/catalog/stages/test_stage_store.py::test_a_disk_that_fills_up_is_left_clean",
        "tests/catalog/stages/test_stage_store.py::test_a_failing_fsync_leaves_no_stage",
        "tests/catalog/stages/test_stage_store.py::test_a_disk_too_small_is_said_before_a_byte_moves",
        "tests/catalog/transfers/test_file_transfer.py::test_a_disk_that_fills_up_keeps_the_true_part",
        "tests/node/test_download_faults.py",
        "tests/network/membership/test_log_store.py::test_a_full_disk_leaves_the_old_log",
        "tests/machine/test_settings.py::test_a_disk_that_takes_nothing_changes_nothing",
    )),
    Proof("F11", "flipped bytes, files cut short, another revision", (
        "tests/catalog/test_shelf.py::test_300_flips_and_cuts_of_a_model_are_found",
        "tests/catalog/stages/test_stage_store.py::test_60_flips_and_cuts_of_a_stage_are_found",
        "tests/catalog/gguf/test_gguf_check.py::test_300_flips_and_cuts_are_refused_or_harmless",
        "tests/catalog/transfers/test_file_transfer.py::test_a_flipped_byte_is_never_used_and_the_next_try_is_good",
        "tests/catalog/test_catalog.py::test_every_file_is_promised_to_the_byte_or_says_that_it_is_not",
    )),
    Proof("F12", "distant protocols, and neighbors as if released; another model; no other engine build", (
        "tests/network/peer/test_peer_links.py::test_neighboring_protocols_link",
        "tests/network/peer/test_peer_links.py::test_distant_protocols_are_told_both_versions",
        "tests/network/peer/test_peer_links.py::test_what_was_never_released_is_told_both_versions",
        "tests/network/membership/test_code_exchange.py::test_another_version_is_told_both",
        "tests/catalog/stages/test_manifest.py",
    )),
    Proof("F12", "another engine build, of a lender and of the host", (
        "tests/node/test_engine_builds.py",
        "tests/backends/test_unproved_engine.py",
    )),
    Proof("F14", "more memory than a lender lends", (
        "tests/inference/stages/test_stage_host.py::test_what_does_not_fit_is_refused_before_anything_is_started",
        "tests/inference/stages/test_stage_host.py::test_more_memory_than_asked_for_is_refused",
        "tests/inference/stages/test_stage_host.py::test_a_worker_that_grows_past_what_is_lent_is_ended_and_the_host_told_why",
        "tests/inference/stages/test_stage_host.py::test_those_who_ask_at_once_do_not_get_the_same_memory",
        "tests/backends/test_worker.py::test_a_model_larger_than_its_limit_is_refused_and_nothing_is_kept",
    )),
    Proof("S2", "a lender that computes, and gives other numbers than the model", (
        "tests/node/test_samples.py",
        "tests/node/verification/test_verifier.py",
        "tests/core/test_verification.py",
        "tests/inference/pipeline/test_verification_samples.py",
    )),
    Proof("S3", "any bytes as frame, message, order, log, announcement, GGUF, chat; what `make fuzz` has kept", (
        "tests/fuzz/test_corpus.py",
        "tests/backends/test_frames.py",
        "tests/backends/test_orders.py",
        "tests/network/test_messages.py",
        "tests/network/discovery/test_announcement.py",
        "tests/core/household/test_membership.py",
        "tests/catalog/gguf/test_gguf_check.py",
    )),
    Proof("S5", "10 GiB of Content-Length, 1 GiB in a frame's header", (
        "tests/backends/test_frames.py::test_a_giant_length_allocates_nothing",
        "tests/network/peer/test_listener.py::test_oversized_bodies_are_refused_before_reading",
        "tests/network/peer/test_listener.py::test_messages_have_limits",
        "tests/node/control/test_guard.py::test_a_huge_body_is_refused_by_its_length",
        "tests/gateway/test_bodies.py::test_a_huge_body_is_refused_before_and_while_it_is_read",
    )),
    Proof("S6", "certificates: unknown, same name, dates, issued by a member, removed, old tickets", (
        "tests/network/test_tls.py",
        "tests/network/peer/test_listener.py::test_unpaired_machines_are_refused",
        "tests/network/peer/test_listener.py::test_a_removed_machine_stays_out_also_after_another_is_paired",
    )),
    Proof("S7", "pairing: replay, reflection, swapped certificates, every wrong order, 4th try, 120 s", (
        "tests/core/household/test_pairing.py",
        "tests/network/membership/test_code_exchange.py",
        "tests/network/membership/test_pairing_window.py",
    )),
    Proof("S8", "hosts, origins, keys, forms, and a thousand names that walk", (
        "tests/node/control/test_guard.py",
        "tests/gateway/access/test_auth.py",
        "tests/gateway/test_bodies.py::test_only_json_is_read",
        "tests/gateway/test_bodies.py::test_a_name_that_walks_is_no_model",
        "tests/catalog/test_walking_names.py",
    )),
    Proof("S9", "templates that try to get out, never end, or grow", (
        "tests/backends/test_template_escapes.py",
        "tests/backends/test_text.py::test_a_hostile_template_fails_within_its_bounds",
        "tests/inference/pipeline/test_completion.py::test_a_template_that_never_ends_is_stopped_and_text_goes_on",
        "tests/inference/pipeline/test_completion.py::test_a_template_that_allocates_too_much_is_stopped",
    )),
)  # fmt: skip
BY_NAME = {proof.kind: proof for proof in PROOFS}


async def run(proof: Proof) -> Outcome:
    """All tests of one row, in a process of their own. A skipped test proves nothing, and is not counted."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}",
            *proof.where, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        try:
            async with asyncio.timeout(SECONDS):
                said, _ = await process.communicate()
        except TimeoutError:
            return Outcome(*proof.kind, False, f"no end within {SECONDS:g} s", in_time=False)
        finally:
            await _ended(process)
        cases = _cases(report)
    passed, failed = sum(map(_has_passed, cases)), sum(map(_has_failed, cases))
    unproved = [name for name in proof.where if not any(_is_of(name, case) for case in cases)]
    why = f"nothing passed of {', '.join(unproved)}" if unproved else ""
    if process.returncode:
        why = " ".join(said.decode(errors="replace").split())[-300:] or "pytest failed"
    facts = {"n": float(passed + failed), "passed": float(passed), "took_s": time.monotonic() - began}
    return Outcome(*proof.kind, not why, why, in_time=not why, facts=facts)


async def _ended(process: asyncio.subprocess.Process) -> None:
    """End the process and everything that it started: nodes, workers, relays."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    elif process.returncode is None:
        process.kill()
    await process.wait()


def _cases(report: Path) -> list[ET.Element]:
    if not report.exists():
        return []
    return list(ET.parse(report).getroot().iter("testcase"))  # noqa: S314  pytest's own, just written


def _has_failed(case: ET.Element) -> bool:
    return any(element.tag in ("failure", "error") for element in case)


def _has_passed(case: ET.Element) -> bool:
    return not any(element.tag in ("failure", "error", "skipped") for element in case)


def _is_of(where: str, case: ET.Element) -> bool:
    """Return whether a passed case is one that the proof names."""
    file, _, name = where.partition("::")
    named = Path(file).with_suffix("").parts
    theirs = case.get("classname", "").split(".")
    n = min(len(named), len(theirs))  # pytest leaves out what lies above its root
    same = list(named[-n:]) == theirs[-n:]
    return _has_passed(case) and same and name in ("", case.get("name", "").partition("[")[0])
