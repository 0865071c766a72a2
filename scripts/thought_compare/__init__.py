"""Record how llama.cpp parses answers with thoughts, for each template of its source."""
