"""A reason in an answer: its English text for whoever reads it, its code and facts for a face that says it anew."""

from __future__ import annotations

from app.core.errors import Reason
from app.core.reasons import reason_fields, reasons_fields, said

FULL = Reason("disk_full", {"folder": "/m", "needed_bytes": 1 << 30, "free_bytes": 7})
HOT = Reason("pause_hot")


def test_beside_the_sentence_stand_its_code_and_its_facts_as_numbers() -> None:
    facts = {"folder": "/m", "needed_bytes": 1 << 30, "free_bytes": 7}
    assert reason_fields("why", FULL) == {"why": said(FULL), "why_facts": {"code": "disk_full", "facts": facts}}


def test_nothing_to_tell_is_null_in_both() -> None:
    assert reason_fields("why", None) == {"why": None, "why_facts": None}


def test_several_reasons_are_two_lists_in_the_same_order() -> None:
    reasons = reasons_fields("notes", [HOT, FULL])
    assert reasons["notes"] == [said(HOT), said(FULL)]
    assert [notes_fact["code"] for notes_fact in reasons["notes_facts"]] == ["pause_hot", "disk_full"]
    assert reasons_fields("notes", []) == {"notes": [], "notes_facts": []}
