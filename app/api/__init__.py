"""The contract of a node's loopback API: every request, answer, snapshot and event as a typed value.

The node encodes these types; the command line and the window decode them. A field keeps its name in the JSON. An
amount has its unit in its name (`_bytes`, `_s`, `_tok_s`); `at`, `since` and `seen_at` are Unix times. None means
that nothing is known, or that there is none. A field of the JSON that a reader does not know is ignored.

A reason travels as two fields: `reason` is the English sentence, for people who read the JSON, and `reason_facts` is
the code and the facts of it, from which the command line and the window make a sentence of their own.
"""
