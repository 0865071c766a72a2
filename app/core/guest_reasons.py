"""The sentences about guests: machines of the household that hosts answer for."""

from __future__ import annotations

GUEST_SENTENCES: dict[str, str] = {
    "guest_no_host": "No host of the household is here to answer. Start Poolhouse on one, "
    "or load a model on this machine.",
    "guest_model_not_loaded": "{name} is not loaded on {host}, which answers here. Loaded: {loaded}. Ask for one of "
    "these; whoever runs {host} can load another one, or let programs do so (`poolhouse api on --may-load` there).",
    "guest_model_stays": "{name} stays loaded on {host}, which answers here: others may be asking it. Whoever runs "
    "{host} can unload it, or let programs do so (`poolhouse api on --may-load` there).",
    "guest_embedding_missing": "There is no embedding model on {host}, which answers here. Whoever runs {host} can "
    "import one (`poolhouse import FILE.gguf` there).",
    "guest_upstream_spent": "{name} answers for {host}, and has too few tokens left for this request. Whoever runs "
    "{host} can give it more (`poolhouse upstream change` there).",
    "guest_upstream_off": "There is no model called {model} on {host}, which answers here, and {name}, which has it, "
    "is off there. Whoever runs {host} can turn it on (`poolhouse upstream on {name}` there).",
    "guest_alone": "{name} is a guest of its household: it asks the hosts, or holds a whole model itself, and uses no "
    "other machine's memory. Load the model whole, or make it a host: `poolhouse roles {name} --host`, "
    "on a machine that may change the household.",
    "roles_contradict": "A guest is answered by hosts and uses no other machine's memory, and a host uses it: {name} "
    "cannot be both. Choose one of the two.",
}
