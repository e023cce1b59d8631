"""No screen, and one thread a test, before torch is imported: tiny models gain nothing from more, and would only spin."""

import os

from replication.runs.run import use_threads

os.environ["MPLBACKEND"] = "agg"
use_threads(1)
