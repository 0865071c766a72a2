"""The Activity page: work in progress, what each machine contributed, forecast accuracy, and benchmarks."""
