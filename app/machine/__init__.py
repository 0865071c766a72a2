"""This computer: where files live, what it has, what its owner allows."""
