"""Links to other machines: how machines are found, and how links are measured, remembered and reported."""
