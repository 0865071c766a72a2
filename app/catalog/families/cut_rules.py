"""The names of what a cut must do beyond renaming layers; each family's row says which of them it needs."""

from __future__ import annotations

from enum import Enum


class Rule(Enum):
    """One thing that makes a run of layers compute what the whole model's graph computes there."""

    F1 = "the loader wants an output matrix in every stage"
    F2 = "dense or experts is chosen by the number of leading dense layers"
    F3 = "which layers have a sliding window is counted from the file's first layer"
    F4 = "which layers are recurrent is counted from the file's first layer"
    F5 = "hidden states may enter only when positions have planes (M-RoPE)"
    F6 = "layers that predict further tokens stand behind the last one"
    F7 = "hidden states that enter are scaled like embeddings"
    F8 = "queries are scaled by the number of layers"
    F9 = "hidden states that enter are taken for those of an image"
    F10 = "a tensor is taken up by full-attention layers only"
    F11 = "what the file does not say is guessed from the number of layers"
    F12 = "the scale of embeddings is applied to hidden states that enter"
    F13 = "a layer's output has another name in the graph"
    F14 = "metadata with a value for each layer is cut like the layers"
