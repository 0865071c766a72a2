"""Records the answers of llama.cpp's own server, with which the tests compare ours: `make api-compare`."""
