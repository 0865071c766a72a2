"""Families with experts."""

from __future__ import annotations

from scripts.families.recipe import DROP, Recipe

MLA = {"q_lora_rank": 24, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16,
       "v_head_dim": 16, "head_dim": DROP, "num_key_value_heads": 4}  # fmt: skip
GROUPED = {"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
           "n_shared_experts": 1, "n_group": 2, "topk_group": 1, "num_nextn_predict_layers": 0}  # fmt: skip

RECIPES = (
    Recipe("qwen3-moe", "Qwen3MoeForCausalLM", "experts in all layers",
           {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
            "norm_topk_prob": True}),
    Recipe("glm4-moe", "Glm4MoeForCausalLM", "two dense layers lead; half of a head is turned",
           {**GROUPED, "n_group": 1, "num_hidden_layers": 5, "first_k_dense_replace": 2,
            "use_qk_norm": True, "attention_bias": True}),
    Recipe("glm4-moe-mtp", "Glm4MoeForCausalLM", "the file ends with a block for more tokens",
           {**GROUPED, "n_group": 1, "first_k_dense_replace": 1}, mtp="layer"),
    Recipe("deepseek-v3", "DeepseekV3ForCausalLM", "latent attention; two dense layers lead",
           {**MLA, **GROUPED, "num_hidden_layers": 5, "first_k_dense_replace": 2,
            "scoring_func": "sigmoid"}),
)  # fmt: skip
