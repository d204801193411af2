"""Own the heads of well-known classifiers: their names in their order, and which of our findings each one is.

A head without a name was not trained. Facts only; no file is opened here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

from cxrspec.errors import Issue, listed
from cxrspec.spelling import plain_name

HeadMap = Literal[
    "torchxrayvision-all",
    "torchxrayvision-nih",
    "torchxrayvision-pc",
    "torchxrayvision-chex",
    "torchxrayvision-mimic_nb",
    "torchxrayvision-mimic_ch",
    "torchxrayvision-rsna",
    "chexpert",
    "nih",
    "nih-alphabetical",
]

XRV: Final = "torchxrayvision-"

_XRV_HEADS: Final = (
    "Atelectasis", "Consolidation", "Infiltration", "Pneumothorax", "Edema", "Emphysema", "Fibrosis", "Effusion",
    "Pneumonia", "Pleural_Thickening", "Cardiomegaly", "Nodule", "Mass", "Hernia", "Lung Lesion", "Fracture",
    "Lung Opacity", "Enlarged Cardiomediastinum",
)  # fmt: skip
_NOT_IN_CHEXPERT: Final = {
    "Infiltration", "Emphysema", "Fibrosis", "Pleural_Thickening", "Nodule", "Mass", "Hernia",
}  # fmt: skip
_NOT_IN_NIH: Final = {"Lung Lesion", "Fracture", "Lung Opacity", "Enlarged Cardiomediastinum"}
_NIH_HEADS: Final = (
    "Atelectasis", "Cardiomegaly", "Effusion", "Infiltration", "Mass", "Nodule", "Pneumonia", "Pneumothorax",
    "Consolidation", "Edema", "Emphysema", "Fibrosis", "Pleural_Thickening", "Hernia",
)  # fmt: skip


def _xrv(blank: set[str]) -> tuple[str, ...]:
    return tuple("" if head in blank else head for head in _XRV_HEADS)


HEAD_MAPS: Final[Mapping[HeadMap, tuple[str, ...]]] = {
    # torchxrayvision 1.5.7, models.py: the labels of each DenseNet's weights
    "torchxrayvision-all": _xrv(set()),
    "torchxrayvision-nih": _xrv(_NOT_IN_NIH),
    "torchxrayvision-pc": _xrv(_NOT_IN_NIH - {"Fracture"}),
    "torchxrayvision-chex": _xrv(_NOT_IN_CHEXPERT),
    "torchxrayvision-mimic_nb": _xrv(_NOT_IN_CHEXPERT),
    "torchxrayvision-mimic_ch": _xrv(_NOT_IN_CHEXPERT),
    "torchxrayvision-rsna": _xrv(set(_XRV_HEADS) - {"Pneumonia", "Lung Opacity"}),
    # the order of the columns in the CheXpert files
    "chexpert": (
        "No Finding", "Enlarged Cardiomediastinum", "Cardiomegaly", "Lung Opacity", "Lung Lesion", "Edema",
        "Consolidation", "Pneumonia", "Atelectasis", "Pneumothorax", "Pleural Effusion", "Pleural Other", "Fracture",
        "Support Devices",
    ),
    # ChestX-ray14 as CheXNet's reimplementations order it: the eight of ChestX-ray8 first
    "nih": _NIH_HEADS,
    "nih-alphabetical": tuple(sorted(_NIH_HEADS)),
}  # fmt: skip

_SAME: Final = (
    {"effusion", "pleuraleffusion"},
    {"lungopacity", "airspaceopacity"},
    {"infiltration", "infiltrate"},
    {"pleuralthickening", "pt", "p.t."},
)
"""Spellings of one concept, in plain form."""


def heads_of(name: HeadMap, spellings: Sequence[str]) -> list[str]:
    """Return the trained heads of a classifier that are the finding with these spellings: one, unless none or several.

    >>> heads_of("chexpert", ["pleural_effusion", "Effusion"])
    ['Pleural Effusion']
    """
    wanted = {concept for spelling in spellings for concept in _concept(spelling)}
    return [head for head in HEAD_MAPS[name] if head and wanted & _concept(head)]


def _concept(spelling: str) -> set[str]:
    plain = plain_name(spelling)
    return next((same for same in _SAME if plain in same), {plain})


def map_issues(name: HeadMap, findings: Mapping[str, Sequence[str]], where: str) -> Iterator[Issue]:
    """Yield why a classifier cannot be scored on findings, given with all their spellings.

    A finding without a trained head has no score: what stands there, 0.5 perhaps, was never learned.
    """
    found = {finding: heads_of(name, spellings) for finding, spellings in findings.items()}
    if missing := [f"{finding}{_why(name, findings[finding])}" for finding, heads in found.items() if not heads]:
        trained = [head for head in HEAD_MAPS[name] if head]
        message = f"{name} has no trained head for {listed(missing)}; it has {listed(trained, len(trained))}"
        hint = "A head that was not trained cannot be scored; map another column of your own with --head"
        yield Issue("finding-missing", where, message, hint)
    for finding, heads in found.items():
        if len(heads) > 1:
            message = f"{len(heads)} heads of {name} fit {finding}: {listed(heads)}"
            yield Issue("column-ambiguous", where, message, f"Say which: --head '{finding}={heads[0]}'")


def _why(name: HeadMap, spellings: Sequence[str]) -> str:
    """Say that a head is there without a name, where other weights of the same classifier have it."""
    if not name.startswith(XRV):
        return ""
    blank = heads_of("torchxrayvision-all", spellings)
    return f" (its head '{blank[0]}' is blank)" if blank else ""


def map_notes(name: HeadMap, file: str) -> Iterator[Issue]:
    """Yield what is worth knowing of the scores of a classifier."""
    if name.startswith(XRV):
        message = "torchxrayvision maps each head's operating point to 0.5: its values rank, and are no probabilities"
        yield Issue("note", file, message)
