"""Records how llama.cpp parses answers with thoughts, for each template in its source."""
