"""An endurance test: half an hour of simulated use of the real window with real nodes (`make endure`)."""
