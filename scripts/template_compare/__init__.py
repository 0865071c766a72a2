"""Compare a few chats as llama.cpp's own server and Poolhouse render them, with each template it ships."""
