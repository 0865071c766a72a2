"""The llama.cpp engine, which uses the unmodified Python binding.

It can load layers and vocabularies from any GGUF file.
"""
