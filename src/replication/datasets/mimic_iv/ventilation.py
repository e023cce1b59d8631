"""When a patient was ventilated through a tube.

The rules are those of `ventilation` in mimic-code (https://github.com/MIT-LCP/mimic-code), the reference for MIMIC-IV.
"""

from typing import TYPE_CHECKING

from replication.datasets.mimic_iv.items import (
    HAMILTON_MODE,
    INVASIVE_HAMILTON_MODES,
    INVASIVE_MODES,
    MASK_HAMILTON_MODES,
    OTHER_DEVICES,
    OXYGEN_DEVICE,
    TRACHEOSTOMY,
    TUBE,
    VENTILATOR_MODE,
)
from replication.datasets.mimic_iv.tables import run, texts

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LONGEST_GAP = 14
"""Hours without a charted device or mode after which an interval has ended."""


def find_ventilation(database: "DuckDBPyConnection") -> None:
    """Create the table `ventilation`: stay_id, begin, until, the intervals of invasive ventilation.

    Each charted device or mode says whether the patient is ventilated through a tube, or says nothing ("Standby"). An interval
    ends where the next one says otherwise, or at its last one before a gap; a single one makes no interval.
    """
    run(
        database,
        f"""
        CREATE TABLE ventilation AS
        WITH charted AS (
            SELECT stay_id, time, max(text) FILTER (item = {OXYGEN_DEVICE}) AS device,
                max(text) FILTER (item = {VENTILATOR_MODE}) AS mode, max(text) FILTER (item = {HAMILTON_MODE}) AS hamilton
            FROM chart WHERE item IN ({OXYGEN_DEVICE}, {VENTILATOR_MODE}, {HAMILTON_MODE}) GROUP BY ALL
        ), known AS (
            SELECT stay_id, time, CASE WHEN device IN ({texts(TRACHEOSTOMY)}) THEN false
                WHEN device = '{TUBE}' OR mode IN ({texts(INVASIVE_MODES)}) OR hamilton IN ({texts(INVASIVE_HAMILTON_MODES)})
                THEN true
                WHEN device IN ({texts(OTHER_DEVICES)}) OR hamilton IN ({texts(MASK_HAMILTON_MODES)}) THEN false END AS invasive
            FROM charted
        ), neighbours AS (
            SELECT *, lag(invasive) OVER w AS before, lead(time) OVER w AS next,
                lag(time) OVER (PARTITION BY stay_id, invasive ORDER BY time) AS last
            FROM known WHERE invasive IS NOT NULL WINDOW w AS (PARTITION BY stay_id ORDER BY time)
        ), numbered AS (
            SELECT *, sum(CASE WHEN before = invasive AND date_diff('hour', last, time) < {LONGEST_GAP} THEN 0 ELSE 1 END)
                OVER (PARTITION BY stay_id ORDER BY time) AS number
            FROM neighbours
        )
        SELECT stay_id, min(time) AS begin,
            max(CASE WHEN date_diff('hour', time, next) < {LONGEST_GAP} THEN next ELSE time END) AS until
        FROM numbered WHERE invasive GROUP BY stay_id, number HAVING min(time) <> max(time)
        """,
        "the ventilation in icu/chartevents",
    )
