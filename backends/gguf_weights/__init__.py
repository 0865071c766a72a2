"""The GGUF reader for engines other than llama.cpp: metadata, packed tensors and their conversion to float32."""
