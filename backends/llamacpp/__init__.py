"""The llama.cpp engine, which uses the unmodified Python binding and can load layers and vocabularies from any GGUF
file."""
