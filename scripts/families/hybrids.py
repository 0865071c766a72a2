"""Recipes for families that combine attention layers with recurrent layers."""

from __future__ import annotations

from scripts.families.experts import GROUPED, MLA
from scripts.families.recipe import DROP, Recipe, every

STATE, FULL = "linear_attention", "full_attention"
DELTA = {"num_hidden_layers": 8, "layer_types": every(8, 4, STATE, FULL), "linear_key_head_dim": 16,
         "linear_value_head_dim": 16, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
         "intermediate_size": 32}  # fmt: skip
ROTARY = {"rope_type": "default", "rope_theta": 10_000.0}
SECTIONS = {**ROTARY, "partial_rotary_factor": 0.5, "mrope_section": [2, 1, 1], "mrope_interleaved": True}
SHARED = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8,
          "shared_expert_intermediate_size": 8}  # fmt: skip
MAMBA = {"mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 16, "mamba_n_groups": 1,
         "mamba_expand": 2}  # fmt: skip
SHORT = {"num_hidden_layers": 6, "block_auto_adjust_ff_dim": False, "head_dim": DROP,
         "layer_types": every(6, 2, "conv", FULL)}  # fmt: skip
SCALES = {"embedding_multiplier": 3.0, "residual_multiplier": 0.6, "attention_multiplier": 0.2,
          "logits_scaling": 1.5}  # fmt: skip
KIMI_FULL = (4, 8)  # counted from one

RECIPES: tuple[Recipe, ...] = (
    Recipe("qwen3-5", "Qwen3_5ForCausalLM", "period 4, twice; three planes of positions",
           {**DELTA, "rope_parameters": SECTIONS}),
    Recipe("qwen3-5-mtp", "Qwen3_5ForCausalLM", "the file ends with a block for more tokens",
           {**DELTA, "rope_parameters": SECTIONS}, mtp="mtp."),
    Recipe("qwen3-5-moe", "Qwen3_5MoeForCausalLM", "the same with experts",
           {**DELTA, **SHARED, "rope_parameters": SECTIONS}, seed=4),
    Recipe("qwen3-next", "Qwen3NextForCausalLM", "period 4, twice, with experts",
           {**DELTA, **SHARED, "rope_parameters": {**ROTARY, "partial_rotary_factor": 0.5}}, seed=11),
    Recipe("lfm2", "Lfm2ForCausalLM", "short convolutions by turns with attention", SHORT),
    Recipe("lfm2-moe", "Lfm2MoeForCausalLM", "the same with experts after two dense layers",
           {**SHORT, "num_dense_layers": 2, "num_experts": 4, "num_experts_per_tok": 2,
            "moe_intermediate_size": 16}),
    Recipe("granite-hybrid", "GraniteMoeHybridForCausalLM", "Mamba 2; the embedding is scaled",
           {**MAMBA, **SCALES, "num_hidden_layers": 6, "intermediate_size": 32, "head_dim": DROP,
            "layer_types": every(6, 3, "mamba", "attention"), "shared_intermediate_size": 32,
            "num_local_experts": 4, "num_experts_per_tok": 2, "position_embedding_type": "nope"},
           converter_config={"layer_types": every(6, 3, "mamba", "attention")}),
    Recipe("nemotron-h", "NemotronHForCausalLM", "a layer is Mamba 2, attention or dense, never two",
           {"num_hidden_layers": DROP, "hybrid_override_pattern": "M-M*-M*-M", "n_groups": 1,
            "mamba_num_heads": 4, "mamba_head_dim": 16, "ssm_state_size": 16},
           converter_config={"hybrid_override_pattern": "M-M*-M*-M", "num_experts_per_tok": DROP,
                 "n_routed_experts": DROP, "n_group": DROP, "topk_group": DROP}),
    Recipe("nemotron-h-moe", "NemotronHForCausalLM", "the same with experts",
           {"num_hidden_layers": DROP, "hybrid_override_pattern": "MEM*EMEM*E", "n_groups": 1,
            "mamba_num_heads": 4, "mamba_head_dim": 16, "ssm_state_size": 16, "n_routed_experts": 4,
            "moe_intermediate_size": 16, "moe_shared_expert_intermediate_size": 16,
            "routed_scaling_factor": 2.0},
           converter_config={"hybrid_override_pattern": "MEM*EMEM*E"}),
    Recipe("kimi-linear", "KimiLinearForCausalLM", "delta attention and latent attention, period 4",
           {**MLA, **GROUPED, "q_lora_rank": None, "n_group": 1, "num_hidden_layers": 8,
            "layer_types": every(8, 4, STATE, FULL), "linear_head_dim": 16, "linear_num_heads": 4,
            "num_local_experts": 4, "intermediate_size": 32, "moe_intermediate_size": 8},
           converter_config={"linear_attn_config": {
               "full_attn_layers": list(KIMI_FULL), "head_dim": 16, "num_heads": 4,
               "kda_layers": [i for i in range(1, 9) if i not in KIMI_FULL],
               "short_conv_kernel_size": 4}, "num_shared_experts": 1, "first_k_dense_replace": 1,
                 "moe_router_activation_func": "sigmoid"},
           renamed=(r"block_sparse_moe\.(?=\w+_proj)", "mlp.")),
    Recipe("falcon-h1", "FalconH1ForCausalLM", "attention and Mamba 2 side by side in each layer",
           {**MAMBA, "mamba_d_ssm": 64, "intermediate_size": 32}),
)  # fmt: skip
