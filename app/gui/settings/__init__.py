"""Everything a person may choose, in one place that can be searched."""
