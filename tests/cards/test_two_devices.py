"""Two devices in one computer: the same driver, listed twice."""

from __future__ import annotations

import pytest

from tests.cards.device import VULKAN0, VULKAN1, environment, in_a_process


def test_a_stage_on_each_of_two_devices_says_what_the_whole_says() -> None:
    findings = in_a_process("tests.cards.family_case", ["llama", "--two-devices"], environment("0,0"), within_s=380)
    assert findings["cut_error"] == 0.0, findings
    assert findings["whole_tokens"] == findings["tokens"], findings


CHECK = "tests.cards.check_case"


def test_each_of_two_devices_is_compared_with_the_processor() -> None:
    checked = in_a_process(CHECK, ["llama"], environment("0,0"))
    assert checked["devices"] == [VULKAN0, VULKAN0, VULKAN1, VULKAN1]
    assert 0 < checked["apart"] < 0.01


@pytest.mark.parametrize(("wrong", "blamed"), [(VULKAN0, VULKAN0), (VULKAN1, VULKAN1), ("head", VULKAN1)])
def test_the_device_that_computes_wrongly_is_named(wrong: str, blamed: str) -> None:
    """The output matrix is on the last device, where all layers are right."""
    checked = in_a_process(CHECK, ["llama", wrong], environment("0,0"))
    assert (checked["refused"], checked["device"]) == ("device_apart", blamed)
