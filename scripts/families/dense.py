"""Recipes for families in which all layers are alike."""

from __future__ import annotations

from scripts.families.recipe import DROP, Recipe

TIED = {"tie_word_embeddings": True}
OWN_HEAD = {"head_dim": DROP}  # the width divided by the number of heads
LLAMA_3 = {"rope_type": "llama3", "rope_theta": 10_000.0, "factor": 8.0, "low_freq_factor": 1.0,
           "high_freq_factor": 4.0, "original_max_position_embeddings": 64}  # fmt: skip
YARN = {"rope_type": "yarn", "rope_theta": 10_000.0, "factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0,
        "original_max_position_embeddings": 128}  # fmt: skip
PARTIAL = {"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 0.5}
LONG = {"rope_type": "longrope", "rope_theta": 10_000.0, "original_max_position_embeddings": 16,
        "partial_rotary_factor": 1.0, "short_factor": [1.0, 1.1, 1.2, 1.3],
        "long_factor": [1.0, 2.0, 3.0, 4.0]}  # fmt: skip
SECTIONS = {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [4, 2, 2]}
EYES = {"depth": 1, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "out_hidden_size": 32}
SCALES = {"embedding_multiplier": 3.0, "residual_multiplier": 0.6, "attention_multiplier": 0.2,
          "logits_scaling": 1.5}  # fmt: skip

RECIPES = (
    Recipe("llama", "LlamaForCausalLM", "the plainest; with Llama 3's table of frequencies",
           {"rope_parameters": LLAMA_3}, seed=6),
    Recipe("llama-tied", "LlamaForCausalLM", "the head is the embedding", TIED, seed=10),
    Recipe("mistral", "MistralForCausalLM", "a head size of its own", {"sliding_window": None}),
    Recipe("ministral3", "Ministral3ForCausalLM", "YaRN, and attention that cools with the position",
           {"rope_parameters": {**YARN, "llama_4_scaling_beta": 0.1, "mscale": 1.0,
                                "mscale_all_dim": 1.0}}, seed=1),
    Recipe("qwen2", "Qwen2ForCausalLM", "biases of query, key and value", OWN_HEAD),
    Recipe("qwen3", "Qwen3ForCausalLM", "norms of query and key; the head is the embedding",
           TIED, seed=11),
    Recipe("qwen2-5-vl", "Qwen2_5_VLForConditionalGeneration", "three planes of positions; text only",
           {**OWN_HEAD, "num_attention_heads": 2, "num_key_value_heads": 1,
            "rope_parameters": SECTIONS}, sees=EYES),
    Recipe("qwen3-vl", "Qwen3VLForConditionalGeneration", "positions in turn; images enter early layers",
           {"rope_parameters": {**SECTIONS, "mrope_interleaved": True}},
           sees={**EYES, "deepstack_visual_indexes": [0]}, seed=3),
    Recipe("gemma", "GemmaForCausalLM", "the embedding is scaled by the width", seed=9),
    Recipe("phi3", "Phi3ForCausalLM", "one tensor for query, key and value, one for gate and up",
           OWN_HEAD),
    Recipe("phi3-longrope", "Phi3ForCausalLM", "frequencies that depend on the length of the context",
           {**OWN_HEAD, "rope_parameters": LONG, "original_max_position_embeddings": 16}),
    Recipe("glm4", "Glm4ForCausalLM", "four norms a layer; half of a head is turned",
           {"rope_parameters": PARTIAL}),
    Recipe("olmo2", "Olmo2ForCausalLM", "norms after, not before", OWN_HEAD),
    Recipe("granite", "GraniteForCausalLM", "four scales", {**OWN_HEAD, **SCALES}),
    Recipe("cohere", "CohereForCausalLM", "attention and feed-forward side by side",
           {**OWN_HEAD, "logit_scale": 0.5}, seed=7),
    Recipe("smollm3", "SmolLM3ForCausalLM", "every fourth layer knows no positions",
           {**OWN_HEAD, "num_hidden_layers": 9}, seed=10),
    Recipe("seed-oss", "SeedOssForCausalLM", "biases, and a head size of its own"),
    Recipe("exaone4", "Exaone4ForCausalLM", "norms of query, key and outputs; no windows",
           {**OWN_HEAD, "sliding_window": None, "layer_types": ["full_attention"] * 4}),
    Recipe("ernie4-5", "Ernie4_5ForCausalLM", "pairs of neighbors are turned", seed=2),
    Recipe("hunyuan-dense", "HunYuanDenseV1ForCausalLM", "norms after the turning"),
    Recipe("apertus", "ApertusForCausalLM", "an activation with four numbers of its own a layer",
           OWN_HEAD),
    Recipe("starcoder2", "Starcoder2ForCausalLM", "layer norms and biases throughout",
           {**OWN_HEAD, "sliding_window": None}, seed=11),
    Recipe("stablelm", "StableLmForCausalLM", "a quarter of a head is turned", OWN_HEAD),
    Recipe("nemotron", "NemotronForCausalLM", "norms around one; squared ReLU; half is turned",
           {**OWN_HEAD, "rope_parameters": PARTIAL}),
    Recipe("arcee", "ArceeForCausalLM", "squared ReLU", OWN_HEAD),
    Recipe("olmo", "OlmoForCausalLM", "norms without weights", OWN_HEAD),
    Recipe("gptneox", "GPTNeoXForCausalLM", "side by side, with layer norms and biases",
           OWN_HEAD, converter_config={"rotary_pct": 0.25}),
)  # fmt: skip
