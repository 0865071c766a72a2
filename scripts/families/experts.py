"""Recipes for mixture-of-experts families."""

from __future__ import annotations

from scripts.families.recipe import DROP, Recipe

MLA = {"q_lora_rank": 24, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16,
       "v_head_dim": 16, "head_dim": DROP, "num_key_value_heads": 4}  # fmt: skip
GROUPED = {"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
           "n_shared_experts": 1, "n_group": 2, "topk_group": 1, "num_nextn_predict_layers": 0}  # fmt: skip
ONE_GROUP = {**GROUPED, "n_group": 1}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
LOCAL = {"num_local_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 16}
TWO_DENSE = {"num_hidden_layers": 5, "first_k_dense_replace": 2}
OWN_HEAD = {"head_dim": DROP}
INDEX = {"index_n_heads": 8, "index_head_dim": 64, "index_topk": 8}
SCALES = {"embedding_multiplier": 3.0, "residual_multiplier": 0.6, "attention_multiplier": 0.2,
          "logits_scaling": 1.5}  # fmt: skip
LONG = {"rope_type": "longrope", "rope_theta": 10_000.0, "original_max_position_embeddings": 16,
        "short_mscale": 1.0, "long_mscale": 1.0, "short_factor": [1.0, 1.1, 1.2, 1.3],
        "long_factor": [1.0, 2.0, 3.0, 4.0]}  # fmt: skip
SPARSE_MIXER = (
    "llama.cpp weighs the two experts by one softmax and makes them add up to one; transformers' sparse mixer "
    "takes a softmax for each among its near rivals, so that both weights are near one"
)
DENSE_FIRST = ["dense", "sparse", "sparse", "sparse"]

RECIPES = (
    Recipe("mixtral", "MixtralForCausalLM", "GGUF calls it llama, as one without experts", LOCAL, seed=11),
    Recipe("qwen2-moe", "Qwen2MoeForCausalLM", "a gated expert that all share",
           {**OWN_HEAD, **EXPERTS, "shared_expert_intermediate_size": 32}),
    Recipe("qwen3-moe", "Qwen3MoeForCausalLM", "experts in all layers",
           {**EXPERTS, "norm_topk_prob": True}),
    Recipe("glm4-moe", "Glm4MoeForCausalLM", "two dense layers lead; half of a head is turned",
           {**ONE_GROUP, **TWO_DENSE, "use_qk_norm": True, "attention_bias": True}),
    Recipe("glm4-moe-mtp", "Glm4MoeForCausalLM", "the file ends with a block for more tokens",
           {**ONE_GROUP, "first_k_dense_replace": 1}, mtp="layer"),
    Recipe("glm4-moe-lite", "Glm4MoeLiteForCausalLM", "GGUF calls it deepseek2; sigmoid gates",
           {**MLA, **ONE_GROUP, "mlp_layer_types": DENSE_FIRST},
           converter_config={"scoring_func": "sigmoid", "first_k_dense_replace": 1}),
    Recipe("deepseek-v2-lite", "DeepseekV2ForCausalLM", "27 layers: by them llama.cpp knows it",
           {**GROUPED, "n_group": None, "topk_group": None, "first_k_dense_replace": 1,
            "num_hidden_layers": 27, "num_attention_heads": 2, "num_key_value_heads": 2,
            "head_dim": DROP, "q_lora_rank": None, "kv_lora_rank": 8, "qk_rope_head_dim": 8,
            "qk_nope_head_dim": 8, "v_head_dim": 8, "moe_intermediate_size": 4},
           converter_config={"scoring_func": "softmax"}),
    Recipe("deepseek-v2", "DeepseekV2ForCausalLM", "compressed queries, softmax gates",
           {**MLA, **GROUPED, **TWO_DENSE, "n_group": None, "topk_group": None},
           converter_config={"scoring_func": "softmax"}),
    Recipe("deepseek-v3", "DeepseekV3ForCausalLM", "groups of experts; two dense layers lead",
           {**MLA, **GROUPED, **TWO_DENSE, "scoring_func": "sigmoid"}, seed=5),
    Recipe("deepseek-v32", "DeepseekV32ForCausalLM", "an index chooses eight positions",
           {**MLA, **GROUPED, **INDEX, "mlp_layer_types": DENSE_FIRST},
           converter_config={"scoring_func": "sigmoid", "first_k_dense_replace": 1}, seed=10),
    Recipe("glm-moe-dsa", "GlmMoeDsaForCausalLM", "an index for some layers, used by the next ones",
           {**MLA, **ONE_GROUP, **INDEX, "num_hidden_layers": 6, "first_k_dense_replace": 1,
            "mlp_layer_types": ["dense"] + 5 * ["sparse"],
            "moe_intermediate_size": 8,
            "indexer_types": ["full", "full", "full", "shared", "shared", "full"]},
           converter_config={"scoring_func": "sigmoid", "first_k_dense_replace": 1}, seed=5),
    Recipe("mistral4", "Mistral4ForCausalLM", "latent attention, no dense layers",
           {**MLA, **ONE_GROUP, "first_k_dense_replace": 0},
           converter_config={"architectures": ["Mistral3ForConditionalGeneration"]}),
    Recipe("granite-moe", "GraniteMoeForCausalLM", "four scales", {**OWN_HEAD, **LOCAL, **SCALES}, seed=12),
    Recipe("olmoe", "OlmoeForCausalLM", "norms over all heads at once",
           {**OWN_HEAD, "num_key_value_heads": 4, **EXPERTS, "intermediate_size": 16}, seed=3),
    Recipe("phimoe", "PhimoeForCausalLM", "layer norms, biases, a router of its own",
           {**OWN_HEAD, **LOCAL, "rope_parameters": LONG, "original_max_position_embeddings": 16,
            "attention_bias": True, "lm_head_bias": True},
           converter_config={"architectures": ["PhiMoEForCausalLM"]}, note=SPARSE_MIXER),
    Recipe("minimax-m2", "MiniMaxM2ForCausalLM", "sigmoid gates; norms over all heads",
           {**LOCAL, "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0,
                                         "partial_rotary_factor": 0.5}},
           converter_config={"rotary_dim": 8, "scoring_func": "sigmoid"}),
    Recipe("ernie4-5-moe", "Ernie4_5_MoeForCausalLM", "a dense layer leads; shared experts",
           {"moe_num_experts": 4, "moe_k": 2, "moe_intermediate_size": 16,
            "moe_num_shared_experts": 2, "intermediate_size": 64, "moe_layer_start_index": 1}, seed=5),
    Recipe("hunyuan-moe", "HunYuanMoEV1ForCausalLM", "norms after the turning; a shared expert",
           {"num_experts": 4, "moe_topk": [2] * 4, "intermediate_size": 16},
           converter_config={"moe_intermediate_size": [16] * 4, "num_shared_expert": [1] * 4}),
    Recipe("hy-v3", "HYV3ForCausalLM", "a dense layer leads, known by its tensors",
           {**EXPERTS, "mlp_layer_types": DENSE_FIRST}),
    Recipe("dots1", "Dots1ForCausalLM", "two dense layers lead; norms of query and key",
           {**ONE_GROUP, **TWO_DENSE, "sliding_window": None, "num_key_value_heads": 4,
            "layer_types": ["full_attention"] * 5}, converter_config={"scoring_func": "sigmoid"}),
)  # fmt: skip
