"""The contract of a node's loopback API: every request, response, snapshot and event as a typed value.

The node encodes these types. The command line and the window decode them. JSON fields have the same names. The names of
amounts end with their unit (`_bytes`, `_s`, `_tok_s`). `at`, `since` and `seen_at` are Unix times. None means that a
value is unknown or does not exist. Decoders ignore unknown JSON fields.

A reason is transmitted as two fields. `reason` is its English sentence, for people who read the JSON. `reason_facts`
contains its code and facts, from which the command line and the window make a sentence in their own language.
"""
