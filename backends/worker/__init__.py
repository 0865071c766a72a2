"""The worker process: frames in, frames out, orders, and what it may reach."""
