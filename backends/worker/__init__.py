"""The worker process: the stages that it computes, its answers to frames and orders, and its confinement."""
