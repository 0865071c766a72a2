"""The life of a placement: its stages, memory, failover, standby copies and replicas."""
