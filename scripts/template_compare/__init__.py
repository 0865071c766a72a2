"""Compare how llama.cpp's own server and Poolhouse render some chats with each template of its source."""
