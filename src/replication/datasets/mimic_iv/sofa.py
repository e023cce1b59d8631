"""SOFA, the sepsis-related organ failure assessment, of every hour of a stay.

The thresholds are those of Vincent et al. (1996). Inputs and windows follow `sofa` in mimic-code
(https://github.com/MIT-LCP/mimic-code), the reference for MIMIC-IV, and so do the rules of `find_ventilation`; docs/data.md says
where they differ.
"""

import logging

from duckdb import DuckDBPyConnection

from replication.datasets.mimic_iv.tables import HEART_RATE, VITALS, count, executing, texts

logger = logging.getLogger(__name__)

EYE, VERBAL, MOTOR = 220739, 223900, 223901
CHARTED_FIO2 = 223835
VENTILATOR_MODE, HAMILTON_MODE, OXYGEN_DEVICE = 223849, 229314, 226732
# Items of hosp/labevents; SPECIMEN says where a blood gas was drawn.
PAO2, FIO2, SPECIMEN = 50821, 50816, 52033
PLATELETS, BILIRUBIN, CREATININE = 51265, 50885, 50912
# A larger one (mg/dl) is an error, as in mimic-code.
LARGEST_CREATININE = 150
NOREPINEPHRINE, EPINEPHRINE, DOPAMINE, DOBUTAMINE = 221906, 221289, 221662, 221653
# Foley, void, condom catheter, ileoconduit, suprapubic, nephrostomies, straight catheter, ureteral stents.
URINE = (226559, 226560, 226561, 226584, 226563, 226564, 226565, 226567, 226557, 226558)
# Irrigation of the bladder: what goes in comes out with the urine.
IRRIGANT_IN, IRRIGANT_AND_URINE_OUT = 227488, 227489

ARTERIAL = "ART."
INTUBATED = "No Response-ETT"  # charted for speech under a tube
TUBE = "Endotracheal tube"
TRACHEOSTOMY = ("Tracheostomy tube", "Trach mask")
# Devices of OXYGEN_DEVICE, without the blanks that some end with, that say a patient is not ventilated through a tube.
OTHER_DEVICES = (
    "Bipap mask", "CPAP mask", "High flow nasal cannula", "Non-rebreather", "Face tent", "Aerosol-cool", "Venti mask",
    "Medium conc mask", "Ultrasonic neb", "Vapomist", "Oxymizer", "High flow neb", "Nasal cannula", "None",
)  # fmt: skip
# Modes of a ventilator that breathes through a tube; "Standby" is none of them.
INVASIVE_MODES = (
    "(S) CMV", "APRV", "APRV/Biphasic+ApnPress", "APRV/Biphasic+ApnVol", "APV (cmv)", "Ambient", "Apnea Ventilation", "CMV",
    "CMV/ASSIST", "CMV/ASSIST/AutoFlow", "CMV/AutoFlow", "CPAP/PPS", "CPAP/PSV", "CPAP/PSV+Apn TCPL", "CPAP/PSV+ApnPres",
    "CPAP/PSV+ApnVol", "MMV", "MMV/AutoFlow", "MMV/PSV", "MMV/PSV/AutoFlow", "P-CMV", "PCV+", "PCV+/PSV", "PCV+Assist",
    "PRES/AC", "PRVC/AC", "PRVC/SIMV", "PSV/SBT", "SIMV", "SIMV/AutoFlow", "SIMV/PRES", "SIMV/PSV", "SIMV/PSV/AutoFlow",
    "SIMV/VOL", "SYNCHRON MASTER", "SYNCHRON SLAVE", "VOL/AC",
)  # fmt: skip
INVASIVE_HAMILTON_MODES = (
    "APRV", "APV (cmv)", "Ambient", "(S) CMV", "P-CMV", "SIMV", "APV (simv)", "P-SIMV", "VS", "ASV",
)  # fmt: skip
MASK_HAMILTON_MODES = ("DuoPaP", "NIV", "NIV-ST")
# Charted items whose text is read; the numbers of the others suffice.
_WITH_TEXT = (VERBAL, VENTILATOR_MODE, HAMILTON_MODE, OXYGEN_DEVICE)
LONGEST_GAP = 14
"""Hours without a charted device or mode after which an interval has ended."""
COMPONENTS = ("respiration", "coagulation", "liver", "circulation", "consciousness", "kidney")


def read_events(database: DuckDBPyConnection) -> None:
    """Create the tables chart, labs (from 24 h before the stay), pressors and urine with the events of `stays`."""
    vitals = [item for vital in VITALS.values() for item in vital]
    logger.info("reading icu/chartevents")
    with executing("icu/chartevents.csv.gz"):
        database.execute(f"""
        CREATE TABLE chart AS
        SELECT s.stay_id, CAST(c.charttime AS TIMESTAMP) AS time, hour_of(c.charttime, s.intime) AS hour,
            CAST(c.itemid AS INTEGER) AS item, number(c.valuenum) AS value,
            CASE WHEN c.itemid IN ({texts(_WITH_TEXT)}) THEN trim(c.value) END AS text
        FROM chartevents c JOIN stays s ON CAST(c.stay_id AS BIGINT) = s.stay_id
        WHERE c.itemid IN ({texts([*vitals, EYE, MOTOR, CHARTED_FIO2, *_WITH_TEXT])})
        """)
    logger.info("reading hosp/labevents")
    with executing("hosp/labevents.csv.gz"):
        database.execute(f"""
        CREATE TABLE labs AS
        SELECT s.stay_id, CAST(l.specimen_id AS BIGINT) AS specimen, CAST(l.charttime AS TIMESTAMP) AS time,
            hour_of(l.charttime, s.intime) AS hour, CAST(l.itemid AS INTEGER) AS item, number(l.valuenum) AS value,
            CASE WHEN l.itemid = '{SPECIMEN}' THEN l.value END AS text
        FROM (SELECT * FROM labevents
              WHERE itemid IN ({texts([PAO2, FIO2, PLATELETS, BILIRUBIN, CREATININE])}) AND number(valuenum) > 0
                  AND (itemid <> '{CREATININE}' OR number(valuenum) <= {LARGEST_CREATININE})
                  OR itemid = '{SPECIMEN}') l
        JOIN stays s ON CAST(l.subject_id AS BIGINT) = s.subject_id
            AND CAST(l.charttime AS TIMESTAMP) BETWEEN s.intime - INTERVAL 24 HOUR AND s.outtime
        """)
    with executing("icu/inputevents.csv.gz"):
        database.execute(f"""
        CREATE TABLE pressors AS
        SELECT s.stay_id, CAST(i.itemid AS INTEGER) AS item,
            hour_of(i.starttime, s.intime) AS first_hour, hour_of(i.endtime, s.intime) AS last_hour,
            number(i.rate) * CASE WHEN i.itemid = '{NOREPINEPHRINE}' AND i.rateuom = 'mg/kg/min'
                AND coalesce(number(i.patientweight), 0) <> 1 THEN 1000 ELSE 1 END AS rate
        FROM inputevents i JOIN stays s ON CAST(i.stay_id AS BIGINT) = s.stay_id
        WHERE i.itemid IN ({texts([NOREPINEPHRINE, EPINEPHRINE, DOPAMINE, DOBUTAMINE])})
            AND number(i.rate) > 0 AND coalesce(i.statusdescription, '') <> 'Rewritten'
        """)
    with executing("icu/outputevents.csv.gz"):
        database.execute(f"""
        CREATE TABLE urine AS
        SELECT s.stay_id, CAST(o.charttime AS TIMESTAMP) AS time, hour_of(o.charttime, s.intime) AS hour,
            sum(CASE WHEN o.itemid = '{IRRIGANT_IN}' THEN -abs(number(o.value)) ELSE number(o.value) END) AS value
        FROM outputevents o JOIN stays s ON CAST(o.stay_id AS BIGINT) = s.stay_id
        WHERE o.itemid IN ({texts([*URINE, IRRIGANT_IN, IRRIGANT_AND_URINE_OUT])}) GROUP BY ALL
        """)


def find_ventilation(database: DuckDBPyConnection) -> None:
    """Create the table `ventilation`: stay_id, begin, until, the intervals of invasive ventilation.

    Each charted device or mode says whether the patient is ventilated through a tube, or says nothing ("Standby"). An interval
    ends where the next one says otherwise, or at its last one before a gap; a single one makes no interval.
    """
    with executing("the ventilation in icu/chartevents"):
        database.execute(f"""
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
        """)


def score_sofa(database: DuckDBPyConnection) -> None:
    """Create the table `sofa`: stay_id, hour (from 0), each of COMPONENTS (0..4) and their sum sofa (0..24).

    A component is the worst of the last 24 h, and 0 without a value. Also creates `grid`: stay_id, hour from -24 to the last of
    the stay. Needs the tables of `read_events` and `find_ventilation`.
    """
    hours = "CAST(unnest(generate_series(-24, hours - 1)) AS INTEGER)"
    with executing("the stays"):
        database.execute(f"CREATE TABLE grid AS SELECT stay_id, {hours} AS hour FROM stays")
    _oxygenation(database)
    _coma_scale(database)
    _urine_a_day(database)
    with executing("what SOFA is scored from"):
        database.execute(f"""
        CREATE MACRO below(x, one, two, three, four) AS CASE WHEN x < four THEN 4 WHEN x < three THEN 3
            WHEN x < two THEN 2 WHEN x < one THEN 1 ELSE 0 END;
        CREATE MACRO above(x, one, two, three, four) AS CASE WHEN x >= four THEN 4 WHEN x >= three THEN 3
            WHEN x >= two THEN 2 WHEN x >= one THEN 1 ELSE 0 END;

        CREATE TABLE points AS
        SELECT stay_id, hour, 'respiration' AS part, CASE WHEN ratio < 100 AND ventilated THEN 4
            WHEN ratio < 200 AND ventilated THEN 3 WHEN ratio < 300 THEN 2 WHEN ratio < 400 THEN 1 ELSE 0 END AS score
            FROM oxygenation
        UNION ALL
        SELECT stay_id, hour, 'coagulation', below(value, 150, 100, 50, 20) FROM labs WHERE item = {PLATELETS}
        UNION ALL
        SELECT stay_id, hour, 'liver', above(value, 1.2, 2, 6, 12) FROM labs WHERE item = {BILIRUBIN}
        UNION ALL
        SELECT stay_id, hour, 'kidney', above(value, 1.2, 2, 3.5, 5) FROM labs WHERE item = {CREATININE}
        UNION ALL
        SELECT stay_id, hour, 'kidney', CASE WHEN volume < 200 THEN 4 WHEN volume < 500 THEN 3 ELSE 0 END FROM urine_a_day
        UNION ALL
        SELECT stay_id, hour, 'consciousness', below(total, 15, 13, 10, 6) FROM coma
        UNION ALL
        SELECT stay_id, hour, 'circulation', 1 FROM chart
            WHERE item IN ({texts(VITALS["MAP"])}) AND value > 0 AND value < 70
        UNION ALL
        SELECT stay_id, unnest(generate_series(greatest(first_hour, -24), last_hour)), 'circulation',
            CASE WHEN item = {DOPAMINE} AND rate > 15 THEN 4 WHEN item = {DOPAMINE} AND rate > 5 THEN 3
                WHEN item IN ({NOREPINEPHRINE}, {EPINEPHRINE}) AND rate > 0.1 THEN 4
                WHEN item IN ({NOREPINEPHRINE}, {EPINEPHRINE}) THEN 3 ELSE 2 END FROM pressors;

        CREATE TABLE hourly AS
        SELECT g.stay_id, g.hour, {", ".join(f"max(score) FILTER (part = '{name}') AS {name}" for name in COMPONENTS)}
        FROM grid g LEFT JOIN points p USING (stay_id, hour) GROUP BY ALL;

        CREATE TABLE sofa AS
        SELECT *, {" + ".join(COMPONENTS)} AS sofa FROM (
            SELECT stay_id, hour, {", ".join(f"coalesce(max({name}) OVER w, 0) AS {name}" for name in COMPONENTS)}
            FROM hourly WINDOW w AS (PARTITION BY stay_id ORDER BY hour ROWS 23 PRECEDING)
        ) WHERE hour >= 0;
        """)


def _oxygenation(database: DuckDBPyConnection) -> None:
    """Create `oxygenation`: stay_id, hour, ratio (PaO2 / FiO2, mmHg) and ventilated of each arterial blood gas.

    FiO2, in per cent, is that of the same specimen, or else the latest charted one of at most four hours before.
    """
    per_cent = "CASE WHEN value > 0.2 AND value <= 1 THEN 100 * value WHEN value BETWEEN 20 AND 100 THEN value END"
    with executing("the blood gases in hosp/labevents"):
        database.execute(f"""
        CREATE TABLE oxygenation AS
        WITH gases AS (
            SELECT stay_id, specimen, max(time) AS time, max(hour) AS hour, max(value) FILTER (item = {PAO2}) AS pao2,
                max({per_cent}) FILTER (item = {FIO2}) AS fio2
            FROM labs WHERE item IN ({PAO2}, {FIO2}, {SPECIMEN}) GROUP BY stay_id, specimen
            HAVING max(text) = '{ARTERIAL}' AND max(value) FILTER (item = {PAO2}) IS NOT NULL
        ), charted AS (
            SELECT stay_id, time, max({per_cent}) AS fio2 FROM chart WHERE item = {CHARTED_FIO2}
            GROUP BY ALL HAVING max({per_cent}) IS NOT NULL
        ), breathed AS (
            SELECT g.stay_id, g.time, g.hour, g.pao2,
                coalesce(g.fio2, CASE WHEN g.time <= c.time + INTERVAL 4 HOUR THEN c.fio2 END) AS fio2
            FROM gases g ASOF LEFT JOIN charted c ON g.stay_id = c.stay_id AND g.time >= c.time
        )
        SELECT b.stay_id, b.hour, 100 * b.pao2 / b.fio2 AS ratio, coalesce(b.time <= v.until, false) AS ventilated
        FROM breathed b ASOF LEFT JOIN ventilation v ON b.stay_id = v.stay_id AND b.time >= v.begin
        WHERE b.fio2 IS NOT NULL
        """)


def _coma_scale(database: DuckDBPyConnection) -> None:
    """Create `coma`: stay_id, hour, total (3..15) of the Glasgow coma scale at each time that a part of it was charted.

    A part that is missing is that of the time before, if less than six hours ago, or else counts as normal. Under a tube the
    scale counts as normal.
    """
    with executing("the coma scale in icu/chartevents"):
        database.execute(f"""
        CREATE TABLE coma AS
        WITH charted AS (
            SELECT stay_id, time, hour, max(value) FILTER (item = {EYE}) AS eye, max(value) FILTER (item = {MOTOR}) AS motor,
                max(CASE WHEN text = '{INTUBATED}' THEN 0 ELSE value END) FILTER (item = {VERBAL}) AS verbal
            FROM chart WHERE item IN ({EYE}, {VERBAL}, {MOTOR}) GROUP BY ALL
        ), neighbours AS (
            SELECT *, lag(time) OVER w > time - INTERVAL 6 HOUR AS recent, lag(eye) OVER w AS eye_before,
                lag(verbal) OVER w AS verbal_before, lag(motor) OVER w AS motor_before
            FROM charted WINDOW w AS (PARTITION BY stay_id ORDER BY time)
        )
        SELECT stay_id, hour, CASE WHEN verbal = 0 OR (verbal IS NULL AND recent AND verbal_before = 0) THEN 15
            WHEN recent AND coalesce(verbal_before, 1) > 0 THEN coalesce(eye, eye_before, 4)
                + coalesce(verbal, verbal_before, 5) + coalesce(motor, motor_before, 6)
            ELSE coalesce(eye, 4) + coalesce(verbal, 5) + coalesce(motor, 6) END AS total
        FROM neighbours
        """)


def _urine_a_day(database: DuckDBPyConnection) -> None:
    """Create `urine_a_day`: stay_id, hour, volume (mL in 24 h) at each hour in which urine was charted.

    An entry is the urine since the one before; the first, since the first heart rate. The volume is that of the entries of the
    last 23 hours, turned into that of 24 hours by the time that they stand for, which must be 22 to 30 hours.
    """
    with executing("the urine in icu/outputevents"):
        database.execute(f"""
        CREATE TABLE urine_a_day AS
        WITH begins AS (
            SELECT stay_id, min(time) AS begin FROM chart WHERE item = {HEART_RATE} GROUP BY ALL
        ), entries AS (
            SELECT stay_id, hour, time, value,
                date_diff('minute', coalesce(lag(time) OVER (PARTITION BY stay_id ORDER BY time), begin), time) AS minutes
            FROM urine JOIN begins USING (stay_id)
        ), days AS (
            SELECT stay_id, hour, sum(value) OVER w AS volume, sum(minutes) OVER w / 60 AS hours
            FROM entries WINDOW w AS (PARTITION BY stay_id ORDER BY time RANGE BETWEEN INTERVAL 23 HOUR PRECEDING AND CURRENT ROW)
        )
        SELECT stay_id, hour, max(volume * 24 / hours) AS volume FROM days WHERE hours BETWEEN 22 AND 30 GROUP BY ALL
        """)


def coverage(database: DuckDBPyConnection) -> dict[str, int]:
    """Count the stays that have each ingredient of labels and variables at least once."""
    coma = {"coma scale, eyes": EYE, "coma scale, speech": VERBAL, "coma scale, movement": MOTOR}
    labs = {"PaO2": PAO2, "platelets": PLATELETS, "bilirubin": BILIRUBIN, "creatinine": CREATININE}
    sources = {f"vital sign {name}": f"chart WHERE item IN ({texts(items)})" for name, items in VITALS.items()}
    sources |= {name: f"chart WHERE item = {item}" for name, item in coma.items()}
    sources |= {name: f"labs WHERE item = {item}" for name, item in labs.items()}
    both = "(SELECT stay_id, item FROM labs UNION ALL SELECT stay_id, item FROM chart)"
    sources |= {
        "FiO2": f"{both} WHERE item IN ({FIO2}, {CHARTED_FIO2})",
        "mechanical ventilation": "ventilation",
        "vasopressors": "pressors",
        "urine": "urine",
        "cultures": "stays SEMI JOIN cultures USING (subject_id)",
        "antibiotics": "stays SEMI JOIN antibiotics USING (subject_id)",
    }
    return {name: count(database, f"SELECT count(DISTINCT stay_id) FROM {rows}") for name, rows in sources.items()}
