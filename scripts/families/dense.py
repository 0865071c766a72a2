"""Families whose layers are all alike."""

from __future__ import annotations

from scripts.families.recipe import DROP, Recipe

RECIPES = (
    Recipe("llama", "LlamaForCausalLM", "the plainest; with Llama 3's table of frequencies",
           {"rope_parameters": {"rope_type": "llama3", "rope_theta": 10_000.0, "factor": 8.0,
                                "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                "original_max_position_embeddings": 64}}),
    Recipe("llama-tied", "LlamaForCausalLM", "the head is the embedding",
           {"tie_word_embeddings": True}, seed=10),
    Recipe("mistral", "MistralForCausalLM", "a head size of its own", {"sliding_window": None}),
    Recipe("qwen2", "Qwen2ForCausalLM", "biases of query, key and value",
           {"head_dim": DROP}),
    Recipe("qwen3", "Qwen3ForCausalLM", "norms of query and key; the head is the embedding",
           {"tie_word_embeddings": True}, seed=11),
    Recipe("phi3", "Phi3ForCausalLM", "one tensor for query, key and value, one for gate and up",
           {"head_dim": DROP}),
)  # fmt: skip
