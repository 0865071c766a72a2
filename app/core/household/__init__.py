"""The machines of the household: facts, the signed log of members, pairing, links. Pure."""
