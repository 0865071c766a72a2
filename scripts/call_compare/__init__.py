"""Compare how llama.cpp and Poolhouse read answers with tool calls, for each template of llama.cpp's source."""
