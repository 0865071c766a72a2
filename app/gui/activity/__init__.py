"""The Activity page, with work in progress, the contribution of each machine, forecast accuracy and benchmarks."""
