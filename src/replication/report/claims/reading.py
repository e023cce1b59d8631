"""Readings: literal interpretations where the paper's text allows several."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from replication.report.claims.verdict import Outcome

Choices = Mapping[str, Sequence[str]]
"""By name of a choice its options."""


@dataclass(frozen=True)
class Reading:
    """One option for each choice that a claim depends on; empty where it does not.

    Args:
        target: of pairs without the class of the condition: `zero` (line 434) or `product` (Algorithm 3).
        network: `of table 1`, or `of the studies`.
        epochs: of claim 3, `ours`, or the `120` of figure 3.
        kernel: `cosine`, or a form of the Gaussian one.
        cohort: `septic` (patients with sepsis, line 651) or `whole`.
        loss: `printed` or `balanced` (pairs weighted by class); of claim 3 `raw` or `above its floor`.
        shares: classes of the references: `population` (shares of the data) or `equal`.
        rule: of decision: `printed` or `parzen`.
        ece: calibration error: `top label` (line 763) or `positive rate`.
        probability: `raw` or `calibrated` on validation data.
        model: where the paper does not name it.
        time: unit of time.
    """

    target: str = ""
    network: str = ""
    epochs: str = ""
    kernel: str = ""
    cohort: str = ""
    loss: str = ""
    shares: str = ""
    rule: str = ""
    ece: str = ""
    probability: str = ""
    model: str = ""
    time: str = ""

    @property
    def choices(self) -> dict[str, str]:
        """Return the options by the name of their choice."""
        return {name: getattr(self, name) for name in NAMES if getattr(self, name)}

    @property
    def of_paper(self) -> bool:
        """Return whether all options stand in the paper."""
        return not any(self.choices.get(name) in options for name, options in OURS.items())

    def text(self, choices: Iterable[str] | None = None) -> str:
        """Write the options of these choices, of all by default: `target zero, probability raw`."""
        names = self.choices if choices is None else choices
        return ", ".join(f"{'ECE' if name == 'ece' else name} {self.choices[name]}" for name in names)


OURS = {
    "network": ("of the studies",),
    "loss": ("balanced", "above its floor"),
    "shares": ("equal",),
    "probability": ("calibrated",),
}
"""The options that are ours."""
NAMES = [field.name for field in fields(Reading)]
"""The names of the choices."""


def varying(readings: Iterable[Reading]) -> list[str]:
    """Return the choices in which readings differ."""
    found = list(readings)
    return [name for name in NAMES if len({getattr(reading, name) for reading in found}) > 1]


def deciding(outcomes: Mapping[Reading, Outcome]) -> list[str]:
    """Return the fewest choices that an outcome is a function of."""
    names = varying(outcomes)
    for size in range(len(names) + 1):
        for subset in itertools.combinations(names, size):
            seen: dict[tuple[str, ...], Outcome] = {}
            if all(
                seen.setdefault(tuple(getattr(reading, name) for name in subset), outcome) == outcome
                for reading, outcome in outcomes.items()
            ):
                return list(subset)
    return names


def without_evidence(choices: Choices, tested: Iterable[Reading]) -> list[str]:
    """Name the combinations of `choices` that no reading has tested.

    An option that no reading has is named once, and its combinations are left out.
    """
    found = {tuple(getattr(reading, name) for name in choices) for reading in tested}
    unused = {
        (name, option)
        for place, (name, options) in enumerate(choices.items())
        for option in options
        if option not in {combination[place] for combination in found}
    }
    texts = [Reading(**{name: option}).text() for name, options in choices.items() for option in options
             if (name, option) in unused]  # fmt: skip
    for combination in itertools.product(*choices.values()):
        options = dict(zip(choices, combination, strict=True))
        if combination not in found and not unused & set(options.items()):
            texts.append(Reading(**options).text())
    return texts
