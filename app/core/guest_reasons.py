"""The sentences about guests: machines of the household that hosts answer for."""

from __future__ import annotations

GUEST_SENTENCES: dict[str, str] = {
    "guest_no_host": "No host of the household is here to answer. Start Poolhouse on one, "
    "or load a model on this machine.",
    "guest_alone": "{name} is a guest of its household: it asks the hosts, or holds a whole model itself, and uses no "
    "other machine's memory. Load the model whole, or make it a host: `poolhouse roles {name} --host`, "
    "on a machine that may change the household.",
    "roles_contradict": "A guest is answered by hosts and uses no other machine's memory, and a host uses it: {name} "
    "cannot be both. Choose one of the two.",
}
