"""The sentences of the shapes and splits that a person can ask for, and of a model that is there more than once."""

from __future__ import annotations

SHAPE_SENTENCES: dict[str, str] = {
    "plan_replicas_chosen": "Whole on each of {machines} machines, as you asked: each reads and answers "
    "requests of its own.",
    "plan_replicas_chosen_mixed": "Split over {machines} machines, and whole on {others} more, as you asked: each of "
    "these reads and answers requests of its own.",
    "replicas_need_two": "{model} cannot be there twice: another machine would have to hold all of it, and {machine} "
    "all of it too, alone or split with the machines that are left. Lend more memory, or leave the shape to Poolhouse.",
    "plan_split_chosen": "Split over {machines} machines, as you asked.",
    "shape_not_split": "{model} cannot be split now: no other machine here can take a part of it. "
    "Lend memory on another one, or leave the shape to Poolhouse.",
    "shape_not_alone": "{model} does not fit on {machine} alone. Leave the shape to Poolhouse, "
    "or choose a smaller model.",
    "split_sum": "The split {split} has {sum} layers, but the model has {layers}. "
    "Choose numbers that add up to {layers}.",
    "split_two": "The split {split} has the host's first layers and its last, and none for a lender. "
    "Write the lenders' between them, such as 5,6,5, or load the model with --shape one.",
    "split_lenders": "The split {split} wants lenders between the host's two runs: {need}. Lenders here: {have}. "
    "Pair another machine or use fewer numbers.",
    "split_family": "Models of the family {architecture} are not proved to split, so it runs whole. "
    "Load it without --split.",
    "split_boundary": "The split {split} cuts before layer {layer}, where this model cannot be cut. "
    "The nearest layer where it can: {legal}.",
    "shape_and_split": "A split says the shape already. Leave --shape out, or give --shape replicas: then the whole "
    "model is also on each machine that the split leaves free.",
    "plan_beside": "What is loaded keeps its memory beside this one: {models}. While more than one answers, each is "
    "slower than alone.",
    "beside_no_room": "{model} does not fit beside the other models any more: their layers came to this machine "
    "meanwhile. Unload one of them, or try again.",
    "models_enough": "{most} models are loaded already. Unload one of them first.",
    "plan_replicas": "Whole on {machines} machines: with {users} people at once a typical request "
    "takes {request_s:.1f} s.",
    "plan_replicas_mixed": "Split over {machines} machines, and whole on {others} more: with {users} people at once a "
    "typical request takes {request_s:.1f} s.",
}
