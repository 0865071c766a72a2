"""The llama.cpp engine on its stock Python binding: layers and vocabularies of any GGUF file."""
