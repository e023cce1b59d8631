"""The replication: datasets, runs, models, experiments and the report. It imports `clailearn`, never the reverse."""
