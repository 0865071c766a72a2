"""The llama.cpp engine, which uses the unmodified Python binding and loads layers and vocabularies of any GGUF file."""
