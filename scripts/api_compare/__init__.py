"""Records what llama.cpp's own server answers, for the tests to compare ours with: `make api-compare`."""
