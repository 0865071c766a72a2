"""Why something does not work: the likeliest cause with its cure, and a file for whoever helps."""
