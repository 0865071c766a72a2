"""The sentences of what cannot be forecast, or not be shared, and why."""

from __future__ import annotations

FORECAST_SENTENCES: dict[str, str] = {
    "unforecast_family": "Its speed is not forecast: how the layers of {architecture} models compute was not "
    "examined here. They are placed by memory; what it does is shown once it answers.",
    "unforecast_indexer": "Its speed is not forecast: {architecture} models choose for themselves which positions "
    "they look at. They are placed by memory; what it does is shown once it answers.",
    "unforecast_experts": "Its speed is not forecast: its file does not say how many experts a token takes. "
    "It is placed by memory; what it does is shown once it answers.",
    "unforecast_unknown": "Its speed is not forecast: what kind of model it is is not known before it is here.",
    "states_by_cost": "A conversation's states take {state_bytes}; up to {states} more of each are kept, after "
    "prompts of {rows} tokens and more: a copy takes {ms} ms, reading a token again {row_ms} ms.",
    "states_kept": "A conversation's states take {state_bytes}; up to {states} more of each are kept after its "
    "prompts: a copy takes {ms} ms. What reading them again would take is not known yet.",
    "states_no_room": "A conversation's states take {state_bytes}, and there is no room to keep more of them: a "
    "prompt is read again where an answer comes back changed.",
    "plan_sketched": "An estimate from what is known of the model before it is here, and from a plain layer of the "
    "same number type that was measured on each machine.",
    "plan_estimated": "An estimate from a plain layer of the same number type: this model's own layers are too large "
    "to be measured on each of these machines.",
    "plan_measured": "The forecast is computed from what was measured here: layers of this model's shape.",
    "plan_measured_links": "The forecast is computed from what was measured: layers of this model's shape on each "
    "machine, and the links between them.",
    "left_out_engine": "{machine} left out: its engine is llama-cpp-python {engine}, and parts of models were proved "
    "with {proved} only. Update Poolhouse on both, and run `make setup` in its folder.",
    "plan_engine": "Nothing is shared: the engine of {machine} is llama-cpp-python {engine}, and parts of models were "
    "proved with {proved} only. Run `make clean` and `make setup` in the Poolhouse folder.",
    "engine_in_the_way": "The engine of {machine} is llama-cpp-python {engine}, and parts of models were proved with "
    "{proved} only, so it holds none. Update Poolhouse and run `make setup` in its folder, or go on without it. {what}",
    "engine_missing": "The engine cannot be used by {worker}: {cause}. Run `make run` in its Poolhouse folder: "
    "it compiles the engine.",
    "engine_knows_not": "Models of the family {architecture} need a newer engine than this Poolhouse has. Update "
    "Poolhouse, or choose another model.",
    "engine_pre_unknown": "This model splits words in a way ({name}) that needs a newer engine than this Poolhouse "
    "has. Update Poolhouse, or choose another model.",
    "engine_unproved": "No part of a model can be computed by {worker}: {cause}. "
    "Run `make clean` and `make setup` in its Poolhouse folder.",
    "context_too_short": "{asked} tokens of context hold no question and answer. Choose {least} or more.",
}
