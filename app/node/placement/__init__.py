"""One placement's life: its stages, memory, failover, standby copies and replicas."""
