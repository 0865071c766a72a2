"""What a running node finds about itself, its household and its network."""
