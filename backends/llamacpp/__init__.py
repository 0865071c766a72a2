"""llama.cpp on its stock binding: runs of layers and vocabularies of any GGUF."""
