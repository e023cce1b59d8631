"""The replication: datasets, runs, models, experiments and the report. It imports `clai`, never the reverse."""
