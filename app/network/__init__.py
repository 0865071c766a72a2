"""The household network: identity, pairing, one mutually authenticated link to each machine."""
