"""GGUF files: their bytes, limits and headers, and the models that the headers describe."""
