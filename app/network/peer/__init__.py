"""Links to other machines: dialed, accepted and kept alive, with the channels and requests that belong to them."""
