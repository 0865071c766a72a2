"""Serves requests on a pipeline of stages: schedules, batches and recovers them, and turns tokens into answers."""
