"""The decisions about what to compute next: micro-batches, admission of requests, speculation, and routing to
replicas."""
