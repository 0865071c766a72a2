"""The life of a placement: its stages, memory, failover, standby layers and replicas."""
