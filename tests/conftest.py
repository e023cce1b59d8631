"""One thread a test, before torch is imported: tiny models gain nothing from more, and beside other work they would spin."""

import os

os.environ["OMP_NUM_THREADS"] = "1"
