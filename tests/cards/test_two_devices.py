"""Two devices in one computer: the same driver, listed twice."""

from __future__ import annotations

from tests.cards.device import environment, in_a_process


def test_a_stage_on_each_of_two_devices_says_what_the_whole_says() -> None:
    findings = in_a_process("tests.cards.family_case", ["llama", "--two-devices"], environment("0,0"), within_s=380)
    assert findings["cut_error"] == 0.0, findings
    assert findings["whole_tokens"] == findings["tokens"], findings
