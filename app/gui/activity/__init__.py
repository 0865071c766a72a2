"""The Activity page: current work, the work of each machine, forecasts compared with results, and benchmarks."""
