"""Compares how llama.cpp's own server and Poolhouse render chats, for each template in llama.cpp's source."""
