"""Building engine packs: one back end of llama.cpp's ggml each, from the hashed source (docs/engines.md)."""
