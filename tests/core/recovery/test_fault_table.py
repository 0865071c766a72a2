"""The table of causes is complete, and says what recovery relies on."""

from __future__ import annotations

from string import Formatter

import pytest

from app.core.errors import Reason, StageFailed, StageLost
from app.core.reasons import SENTENCES
from app.core.recovery import fault_table
from app.core.recovery.fault_table import GROUPS, RUN_STAYS, Fault, FaultClass, Retry


def test_no_entry_is_idle_or_there_twice() -> None:
    listed = [code for _, codes in GROUPS for code in codes.split()]
    assert not set(listed) - set(SENTENCES)
    assert len(listed) == len(set(listed))
    assert set(SENTENCES) >= RUN_STAYS


@pytest.mark.parametrize(
    "code",
    [
        "numbers_not_finite", "stage_failed", "engine_gave_up", "model_not_loaded", "template_failed",
        "grammar_refused", "sampling_failed", "stage_bad_step", "engine_knows_not", "model_changed",
    ],
)  # fmt: skip
def test_what_would_come_again_is_not_tried_again(code: str) -> None:
    assert fault_table.is_permanent(Reason(code))
    assert type(fault_table.loss_error(Reason(code))) is StageFailed
    assert fault_table.classify(Reason(code)).fault not in (Fault.MACHINE, Fault.LINK)


def test_what_a_machine_gives_as_its_reason_names_no_other_one() -> None:
    for code, fact in (
        ("stage_silent", "machine"),
        ("worker_died", "worker"),
        ("peer_floods", "name"),
        ("version_differs", "older"),
        ("machine_removed", "name"),
    ):
        reason = fault_table.limited_to_sender(Reason(code, {fact: "kitchen", "seconds": 3}), "attic")
        assert reason == Reason(code, {fact: "attic", "seconds": 3})
    of_a_model = Reason("model_gone", {"name": "guide", "path": "x"})
    assert fault_table.limited_to_sender(of_a_model, "attic") == of_a_model
    of_who_asks = Reason("role_missing", {"name": "kitchen"})
    assert fault_table.limited_to_sender(of_who_asks, "attic") == Reason("role_missing_here", {"name": "attic"})
    assert fault_table.about_requester(of_who_asks, "attic") == fault_table.limited_to_sender(of_who_asks, "attic")
    assert fault_table.about_requester(of_a_model, "attic") == of_a_model


@pytest.mark.parametrize("code", ["worker_died", "worker_hung", "stage_silent", "stage_unreachable", "lend_taken_back"])
def test_a_machine_that_is_gone_is_made_up_for(code: str) -> None:
    assert not fault_table.is_permanent(Reason(code))
    assert type(fault_table.loss_error(Reason(code))) is StageLost


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        ("model_not_loaded", FaultClass(Fault.MODEL)),  # the file is bad wherever it lies
        ("engine_missing", FaultClass(Fault.ENGINE, Retry.ELSEWHERE)),  # there; here it may be well
        ("memory_short", FaultClass(Fault.MEMORY, Retry.ELSEWHERE)),
        ("pause_active", FaultClass(Fault.OWNER, Retry.ELSEWHERE)),
        ("worker_died", FaultClass(Fault.MACHINE, Retry.AGAIN)),
        ("of another version", FaultClass(Fault.MACHINE, Retry.ELSEWHERE)),
    ],
)
def test_what_a_lender_says_is_judged_by_its_own_reason(cause: str, expected: FaultClass) -> None:
    assert fault_table.classify(Reason("lender_said", {"machine": "attic", "what": Reason(cause)})) == expected


PLACED = {"machine", "worker", "name"}  # who says it is put there
OF_ITS_LAYERS = {"cause", "words", "how", "seconds", "why", "used_bytes", "allowed_bytes"}
OF_A_PAUSE = {"percent", "program", "degrees"}


def test_what_ends_layers_names_nobody_but_who_says_it() -> None:
    for code in (code for code in SENTENCES if fault_table.may_end_layers(code)):
        facts = {name for _, name, _, _ in Formatter().parse(SENTENCES[code]) if name}
        assert facts <= PLACED | OF_ITS_LAYERS | OF_A_PAUSE, code
        assert fault_table.classify(Reason(code)).fault not in (Fault.NEWS, Fault.SOURCE), code


@pytest.mark.parametrize("code", ["stage_sent_odd", "grammar_refused", "form_too_heavy", "bug", "of another version"])
def test_nobody_else_gives_these_reasons(code: str) -> None:
    assert not fault_table.may_end_layers(code)


def test_a_code_of_another_version_is_not_tried_again() -> None:
    assert fault_table.is_permanent(Reason("of another version"))
