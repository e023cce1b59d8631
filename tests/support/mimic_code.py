"""Sepsis-3 by mimic-code, https://github.com/MIT-LCP/mimic-code, the reference for MIMIC-IV: its own SQL, from a checkout."""

from pathlib import Path

import duckdb

CONCEPTS = [
    "demographics/icustay_times", "demographics/weight_durations", "measurement/urine_output",
    "measurement/urine_output_rate", "measurement/bg", "measurement/chemistry", "measurement/complete_blood_count",
    "measurement/enzyme", "measurement/gcs", "measurement/oxygen_delivery", "measurement/ventilator_setting",
    "measurement/vitalsign", "medication/antibiotic", "medication/dobutamine", "medication/dopamine",
    "medication/epinephrine", "medication/norepinephrine", "treatment/ventilation", "score/sofa",
    "sepsis/suspicion_of_infection", "sepsis/sepsis3",
]  # fmt: skip
TABLES = {
    "hosp": ["patients", "labevents", "microbiologyevents", "prescriptions"],
    "icu": ["icustays", "chartevents", "inputevents", "outputevents"],
}
# Columns whose type the values may not tell.
TYPES = {
    "labevents": {"value": "VARCHAR", "valuenum": "DOUBLE"},
    "chartevents": {"value": "VARCHAR", "valuenum": "DOUBLE", "storetime": "TIMESTAMP"},
    "outputevents": {"value": "DOUBLE"},
    "inputevents": {"rate": "DOUBLE", "amount": "DOUBLE"},
    "prescriptions": {"drug": "VARCHAR", "route": "VARCHAR"},
    "microbiologyevents": {"chartdate": "TIMESTAMP", "charttime": "TIMESTAMP"},
}


def build(checkout: Path, tables: Path, path: Path) -> None:
    """Write a database at `path` with mimic-code's tables in the schema mimiciv_derived.

    Its hours are those of this project, counted from the admission to the ICU, so that scores of the same hours compare.
    """
    with duckdb.connect(str(path)) as database:
        database.execute("SET threads = 1")
        for schema, names in TABLES.items():
            database.execute(f"CREATE SCHEMA mimiciv_{schema}")
            for name in names:
                types = "".join(f", types = {TYPES[name]}" for _ in range(name in TYPES))
                source = f"read_csv('{tables / schema / name}.csv.gz', header = true, sample_size = -1{types})"
                database.execute(f"CREATE TABLE mimiciv_{schema}.{name} AS SELECT * FROM {source}")
        database.execute("""
            CREATE SCHEMA mimiciv_derived;
            CREATE TABLE mimiciv_derived.icustay_hourly AS
            SELECT stay_id, CAST(hr AS BIGINT) AS hr, intime + INTERVAL (hr + 1) HOUR AS endtime FROM (
                SELECT stay_id, intime,
                    unnest(generate_series(-24, CAST(ceil(epoch(outtime - intime) / 3600) AS INT) - 1)) AS hr
                FROM mimiciv_icu.icustays
            )
        """)
        for concept in CONCEPTS:
            database.execute((checkout / "mimic-iv" / "concepts_duckdb" / f"{concept}.sql").read_text())
