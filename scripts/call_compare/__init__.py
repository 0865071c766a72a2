"""What llama.cpp reads in answers with calls of tools, for each template of its source, and how ours compares."""
