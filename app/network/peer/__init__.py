"""Links to other machines: dials, accepts and maintains them, and carries channels and requests over them."""
