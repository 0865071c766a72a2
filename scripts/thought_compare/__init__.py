"""Record what llama.cpp reads in answers with thoughts, for each template of its source."""
