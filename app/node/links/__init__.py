"""Links to other machines: how machines are discovered, and how links are measured, stored and reported."""
