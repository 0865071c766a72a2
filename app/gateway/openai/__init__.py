"""OpenAI's chat and text completions, models, and llama.cpp's routes beside them."""
