"""Recipes for families with a sliding window in some layers. Each has more layers than a period of its pattern."""

from __future__ import annotations

from scripts.families.recipe import DROP, Recipe, every

WINDOW = 8  # shorter than the prompt
SLIDING, FULL = "sliding_attention", "full_attention"
TURNS = {"num_hidden_layers": 5, "sliding_window": WINDOW,
         "layer_types": [FULL if index % 2 else SLIDING for index in range(5)]}  # fmt: skip
FOURTH = {"num_hidden_layers": 6, "sliding_window": WINDOW, "layer_types": every(6, 4, SLIDING, FULL)}
SIXTH = {"num_hidden_layers": 8, "sliding_window": WINDOW, "layer_types": every(8, 6, SLIDING, FULL)}
SCALES = {"embedding_multiplier": 3.0, "residual_multiplier": 0.6, "attention_multiplier": 0.2,
          "logits_scaling": 1.5}  # fmt: skip
ROTARY = {"rope_type": "default", "rope_theta": 10_000.0}
HALF = {**ROTARY, "partial_rotary_factor": 0.5}
PROPORTIONAL = {SLIDING: ROTARY, FULL: {"rope_type": "proportional", "rope_theta": 100_000.0,
                                        "partial_rotary_factor": 0.5}}  # fmt: skip
GEMMA_4 = {**SIXTH, "rope_parameters": PROPORTIONAL, "hidden_size_per_layer_input": 0,
           "global_head_dim": 32, "num_global_key_value_heads": 1, "attention_k_eq_v": True,
           "final_logit_softcapping": 30.0, "intermediate_size": 32}  # fmt: skip
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}

RECIPES = (
    Recipe("gemma2", "Gemma2ForCausalLM", "period 2; soft caps; four norms a layer",
           {**TURNS, "query_pre_attn_scalar": 16}, seed=2),
    Recipe("gemma3", "Gemma3ForCausalLM", "period 6, and another base of positions in windows",
           {**SIXTH, "query_pre_attn_scalar": 16}, seed=6),
    Recipe("gemma4", "Gemma4ForCausalLM", "period 6; larger heads where all is seen; keys are values",
           GEMMA_4, seed=2),
    Recipe("gemma4-moe", "Gemma4ForCausalLM", "the same with experts beside a dense part",
           {**GEMMA_4, "enable_moe_block": True, "num_experts": 4, "top_k_experts": 2,
            "moe_intermediate_size": 16}, seed=5),
    Recipe("gpt-oss", "GptOssForCausalLM", "period 2, experts in all layers, attention sinks",
           {**TURNS, "intermediate_size": 32, "num_local_experts": 4, "num_experts_per_tok": 2}),
    Recipe("olmo3", "Olmo3ForCausalLM", "period 4; norms after", {**FOURTH, "head_dim": DROP}, seed=3),
    Recipe("cohere2", "Cohere2ForCausalLM", "period 4; positions in windows only",
           {**FOURTH, "head_dim": DROP, "logit_scale": 0.5}, converter_config={"rotary_pct": 1.0}, seed=9),
    Recipe("cohere2-moe", "Cohere2MoeForCausalLM", "the same with experts after a dense layer",
           {**FOURTH, **EXPERTS, "logit_scale": 0.5, "intermediate_size": 16}, seed=11),
    Recipe("granite-swa", "GraniteSWAForCausalLM", "period 4, four scales",
           {**FOURTH, **SCALES, "head_dim": DROP}),
    Recipe("exaone-moe", "ExaoneMoeForCausalLM", "period 4, experts after a dense layer",
           {**FOURTH, **EXPERTS, "first_k_dense_replace": 1}, converter_config={"scoring_func": "sigmoid"}),
    Recipe("afmoe", "AfmoeForCausalLM", "period 4, gates, experts after two dense layers",
           {**FOURTH, **EXPERTS, "num_dense_layers": 2, "num_shared_experts": 1,
            "mup_enabled": True, "route_scale": 2.0},
           converter_config={"route_norm": True, "score_func": "sigmoid"}),
    Recipe("mimo-v2-flash", "MiMoV2FlashForCausalLM", "sinks in windows; values smaller than keys",
           {**FOURTH, "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
            "v_head_dim": 8, "rope_parameters": {SLIDING: HALF, FULL: HALF}},
           converter_config={"hybrid_layer_pattern": [1, 1, 1, 0, 1, 1], "topk_method": "noaux_tc",
                 "swa_head_dim": 16, "swa_v_head_dim": 8, "swa_num_attention_heads": 4,
                 "swa_num_key_value_heads": 4, "partial_rotary_factor": 0.5,
                 "rope_parameters": {**HALF, SLIDING: HALF, FULL: HALF}, "scoring_func": "sigmoid"}),
    Recipe("laguna", "LagunaForCausalLM", "a head count for each layer, gates, experts",
           {**FOURTH, **EXPERTS, "shared_expert_intermediate_size": 16,
            "layer_types": [SLIDING if index % 4 else FULL for index in range(6)]}),
    Recipe("mellum", "MellumForCausalLM", "period 4, experts",
           {**FOURTH, **EXPERTS, "rope_parameters": {SLIDING: ROTARY, FULL: ROTARY}}),
    Recipe("llama4", "Llama4ForCausalLM", "no positions in every fourth layer, experts; llama.cpp's chunks are 8,192",
           {"num_hidden_layers": 8, "attention_chunk_size": 8192, "intermediate_size": 16,
            "intermediate_size_mlp": 32, "num_local_experts": 4, "num_experts_per_tok": 1}),
)  # fmt: skip
