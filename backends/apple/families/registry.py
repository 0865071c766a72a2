"""The mapping from the architecture name in a GGUF file to the family's class."""

from __future__ import annotations

from backends.apple.decoder import Decoder
from backends.apple.families.deepseek import DeepSeek2
from backends.apple.families.gemma import Gemma2, Gemma3, Gemma4
from backends.apple.families.glm import Glm4, Glm4Moe
from backends.apple.families.gpt_oss import GptOss
from backends.apple.families.granite import Granite
from backends.apple.families.lfm2 import Lfm2
from backends.apple.families.llama import Llama, Ministral3, SmolLm3
from backends.apple.families.olmo import Olmo2
from backends.apple.families.phi import Phi3
from backends.apple.families.qwen import Qwen2, Qwen3
from backends.apple.families.qwen35 import Qwen35

FAMILIES: dict[str, type[Decoder]] = {
    "llama": Llama,
    "mistral3": Ministral3,
    "smollm3": SmolLm3,
    "qwen2": Qwen2,
    "qwen3": Qwen3,
    "qwen3moe": Qwen3,
    "gemma2": Gemma2,
    "gemma3": Gemma3,
    "gemma4": Gemma4,
    "phi3": Phi3,
    "gpt-oss": GptOss,
    "glm4": Glm4,
    "glm4moe": Glm4Moe,
    "deepseek2": DeepSeek2,
    "granite": Granite,
    "granitemoe": Granite,
    "olmo2": Olmo2,
    "lfm2": Lfm2,
    "qwen35": Qwen35,
}
