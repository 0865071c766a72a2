"""The exit codes of a command. This file imports nothing: it is read before anything else."""

FAILED = 1
WRONG_USAGE = 2
STOPPED = 130  # what shells report after Ctrl-C
