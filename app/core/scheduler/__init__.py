"""The decisions about what to compute next: micro-batches, admission, and routing to replicas."""
