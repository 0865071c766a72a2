"""Compares how llama.cpp and Poolhouse parse answers with tool calls, for each template in llama.cpp's source."""
