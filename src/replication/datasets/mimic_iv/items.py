"""The items of MIMIC-IV's tables that labels and variables are read from: numbers, modes of ventilators, names of drugs."""

# Items of icu/chartevents for each vital sign; FAHRENHEIT is in degrees Fahrenheit.
VITALS = {
    "HR": (220045,),
    "O2Sat": (220277,),
    "Temp": (223761, 223762),
    "SBP": (220050, 225309, 220179),
    "MAP": (220052, 225312, 220181),
    "DBP": (220051, 225310, 220180),
    "Resp": (220210, 224690),
}
HEART_RATE, FAHRENHEIT = 220045, 223761
EYE, VERBAL, MOTOR = 220739, 223900, 223901
CHARTED_FIO2 = 223835
VENTILATOR_MODE, HAMILTON_MODE, OXYGEN_DEVICE = 223849, 229314, 226732
# Items of hosp/labevents; SPECIMEN says where a blood gas was drawn.
PAO2, FIO2, SPECIMEN = 50821, 50816, 52033
PLATELETS, BILIRUBIN, CREATININE = 51265, 50885, 50912
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

# Stems of the names of systemic antibiotics, matched anywhere in the drug: generic names, and brands that occur alone.
ANTIBIOTICS = (
    "amikacin|amoxicillin|ampicillin|augmentin|azithromycin|aztreonam|bactrim|cef|cephalexin|chloramphenicol|cipro|"
    "clarithromycin|clindamycin|colisti|dalbavancin|daptomycin|dicloxacillin|doripenem|doxycycline|ertapenem|erythromycin|"
    "fidaxomicin|flagyl|fosfomycin|gentamicin|imipenem|levofloxacin|linezolid|meropenem|metronidazole|minocycline|"
    "moxifloxacin|nafcillin|nitrofurantoin|ofloxacin|oritavancin|oxacillin|penicillin|piperacillin|polymyxin|quinupristin|"
    "rifampin|streptomycin|sulfamethoxazole|sulfadiazine|tedizolid|telavancin|tetracycline|ticarcillin|tigecycline|"
    "tobramycin|trimethoprim|unasyn|vancomycin|zosyn"
)
INTRAVENOUS_ROUTES = ("IV", "IV DRIP", "IV BOLUS", "IVPCA", "PB")
SYSTEMIC_ROUTES = (*INTRAVENOUS_ROUTES, "IVT", "IM", "PO", "PO/NG", "ORAL", "NG", "J TUBE", "G TUBE")
NOT_SYSTEMIC = "ophth|otic|cream|ointment|oint|gel|topical|desensitization|lock|enema|irrigation"
