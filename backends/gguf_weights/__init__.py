"""The weights of GGUF files as engines other than llama.cpp read them: metadata, packed blocks and their numbers."""
