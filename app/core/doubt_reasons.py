"""The sentences of machines whose numbers were found wrong."""

from __future__ import annotations

DOUBT_SENTENCES: dict[str, str] = {
    "machine_doubted": "{machine} gave wrong numbers in a check, so it gets no layers from this machine. "
    "Look after it; `poolhouse use-again {machine}` takes it back.",
    "left_out_failed": "{machine} left out: it failed while the model was loaded. {why}",
    "left_out_doubted": "{machine} left out: it gave wrong numbers in a check. "
    "Look after it, then use it again.",
    "doubt_in_the_way": "{machine} gave wrong numbers in a check and is left out. "
    "Use it again, or go on without it. {what}",
    "machine_not_doubted": "Nothing was found wrong with the numbers of {machine}. It is used already.",
    "answer_doubted": "{machine} computed a part of it, and gave wrong numbers in a check. "
    "Ask again once it is replaced.",
    "sample_no_room": "Checking a sample takes {needed_bytes}, and {free_bytes} can be had for it now. "
    "It is checked when more is free.",
    "log_machine_doubted": "{machine} gave wrong numbers: a sample of its work was computed again here, and differs. "
    "It gets no layers from this machine until it is used again.",
    "log_machine_unclear": "{machine} and this machine find different numbers, and a third machine does not agree "
    "with this one. Run the checks on both.",
    "log_machine_used_again": "{machine} is used again, after its wrong numbers.",
}
