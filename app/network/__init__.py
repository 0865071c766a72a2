"""The household network: identity, pairing, and one mutually authenticated link to each machine."""
