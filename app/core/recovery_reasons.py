"""The sentences of machines that leave and of answers that go on: what happened, what is done, how long it takes."""

from __future__ import annotations

RECOVERY_SENTENCES: dict[str, str] = {
    "recovery_reconnecting": "{machine} stopped responding. Reconnecting…",
    "recovery_reconnected": "{machine} is back after {seconds} s, and nothing was lost.",
    "machine_closed": "Poolhouse was closed on {machine}. Start it there again.",
    "recovery_rebuilding": "{machine} is gone. Rebuilding with {with}, about {seconds} s.",
    "recovery_reloading": "{machine} lost its layers. Loading them again, about {seconds} s.",
    "recovery_replaying": "{machine} stopped responding. Starting again from the text so far, "
    "about {seconds} s.",
    "recovery_moved": "{machine} is gone. The answer goes on with {to}.",
    "pause_sleep": "It is about to sleep. Resumes when it is awake.",
    "pause_shutdown": "It is being shut down.",
    "pause_quit": "Poolhouse is being ended there.",
    "recovery_handed_over": "{machine} leaves. Others hold its layers already; it goes on from the text so far, "
    "about {seconds} s.",
    "recovery_leaving": "{machine} leaves. It computes on while its layers are loaded on {with}, about {seconds} s.",
    "recovery_moving": "The layers are placed anew, about {seconds} s.",
    "recovery_joining": "{machine} is used again: answers will be faster with it.",
    "recovery_slow": "{machine} answers far slower than it did: others take over what it holds.",
    "machine_replaced": "It answers far slower than it did, and is being replaced.",
    "recovery_better": "The layers are placed better now: answers will be faster.",
    "plan_kept": "The layers stay where they were; only what was lost is held by another machine.",
    "answer_gone": "The rest of this answer was not kept. The text so far stays: continue it, or ask again.",
    "recovery_continued": "Continued after {seconds} s.",
    "recovery_too_often": "This answer was interrupted {times} times, so it stopped. The last time: {why} "
    "The text so far is kept. Ask again when the machines stay connected.",
    "recovery_beside": "Another answer stopped with an error. This one starts again from the text so far.",
    "recovery_short": "{machine} is gone, and the rest is too small: {what} The text so far is kept. "
    "It goes on when {machine} returns; a smaller model would answer now.",
    "recovery_short_here": "The machines that are here are too small now: {what} The text so far is kept. "
    "It goes on when there is memory again; a smaller model would answer now.",
    "recovery_waited": "The machines that are here are too small: {what} It was waited for {minutes} minutes. "
    "The text so far is kept. Ask again when there is more memory, or ask a smaller model.",
}
