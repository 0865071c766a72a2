"""Families in which some layers see a window only. Each has more layers than its pattern's period."""

from __future__ import annotations

from scripts.families.recipe import Recipe, every

WINDOW = 8  # shorter than the prompt
SLIDING, FULL = "sliding_attention", "full_attention"

RECIPES = (
    Recipe("gemma2", "Gemma2ForCausalLM", "period 2; soft caps; four norms a layer",
           {"num_hidden_layers": 5, "sliding_window": WINDOW, "query_pre_attn_scalar": 16,
            "layer_types": [FULL if i % 2 else SLIDING for i in range(5)]}, seed=4),
    Recipe("gemma3", "Gemma3ForCausalLM", "period 6, and another base of positions in windows",
           {"num_hidden_layers": 8, "sliding_window": WINDOW, "query_pre_attn_scalar": 16,
            "layer_types": every(8, 6, SLIDING, FULL)}, seed=10),
    Recipe("gpt-oss", "GptOssForCausalLM", "period 2, experts in all layers, attention sinks",
           {"num_hidden_layers": 5, "sliding_window": WINDOW, "intermediate_size": 32,
            "num_local_experts": 4, "num_experts_per_tok": 2,
            "layer_types": [FULL if i % 2 else SLIDING for i in range(5)]}),
)  # fmt: skip
