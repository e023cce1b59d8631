"""One thread a test, before torch is imported: tiny models gain nothing from more, and beside other work they would spin."""

from replication.runs.jobs import use_threads

use_threads(1)
