"""The Activity page: what runs, what each machine computed, forecasts against facts, the benchmark."""
