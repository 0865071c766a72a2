"""The decisions about what to compute next: micro-batches, admission, speculation, and routing to replicas."""
