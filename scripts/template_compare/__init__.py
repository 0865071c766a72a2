"""What llama.cpp's own server makes of a few chats with each chat template that its source ships, and what we make."""
