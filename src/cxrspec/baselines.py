"""Own the baselines that never see a pixel. They read frozen tables only, never a definition file or a source."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from cxrspec.digest import Table
from cxrspec.errors import IDS_LISTED, Issue, RegistryError, SubmissionError, listed
from cxrspec.lock import Lock
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.submission import task_of
from cxrspec.submit import Request
from cxrspec.tasks import PredictionNeed
from cxrspec.tasks.covariates import age_years

METADATA_SYSTEM: Final = "metadata-only"


def metadata_request(reference: Reference, registry: Registry) -> Request:
    """Return the probe submission of age, sex, view and log(1 + follow-up number) from the frozen covariates.

    It is the floor that every image model must beat: what the labels owe to who was imaged, and how.

    Raises:
        RegistryError: if a covariate table is missing or altered, or lacks one of the four.
        SubmissionError: if a cell is not what its covariate holds.
    """
    lock = registry.read_lock(reference)
    need = _need(lock, "probe")
    rows: dict[str, list[str]] = {}
    for subset in need.subsets:
        table = _covariates(lock, subset, registry)
        columns = {name: _numbers(table, name, read) for name, read in _FEATURES.items()}
        for position, item in enumerate(table.item_ids):
            rows[item] = [repr(columns[name][position]) for name in _FEATURES]
    card = {
        "model_name": METADATA_SYSTEM,
        "description": "Logistic probe on age, sex, view and log(1 + follow-up number); it sees no pixel.",
    }
    data = _tsv(("item_id", *_COLUMNS), rows)
    trained_on = f"{lock.reference}:{lock.definition['protocols']['probe']['fit_on']}"
    return Request(lock.reference, METADATA_SYSTEM, "probe", data, "predictions.tsv", card=card, trained_on=trained_on)


def labels_request(
    reference: Reference, system: str, registry: Registry, *, covariate: str, names: Mapping[str, Sequence[str]]
) -> Request:
    """Return the zero-shot submission that scores 1 where a frozen covariate lists one of the names of a finding.

    Args:
        reference: the definition version.
        system: name of the submission.
        registry: where its tables are.
        covariate: the covariate whose cells hold names joined by `|`.
        names: our finding: the names that count for it.

    Raises:
        RegistryError: if a covariate table is missing or altered, or has no such covariate.
    """
    lock = registry.read_lock(reference)
    rows: dict[str, list[str]] = {}
    for subset in _need(lock, "zero_shot").subsets:
        table = _covariates(lock, subset, registry)
        for item, cell in zip(table.item_ids, _column(table, covariate), strict=True):
            present = set(cell.split("|"))
            rows[item] = ["1" if present & set(wanted) else "0" for wanted in names.values()]
    spelled = "; ".join(f"{ours} = {' or '.join(theirs)}" for ours, theirs in names.items())
    card = {"model_name": system, "description": f"The frozen covariate '{covariate}' as scores: {spelled}."}
    data = _tsv(("item_id", *names), rows)
    return Request(lock.reference, system, "zero_shot", data, "predictions.tsv", card=card, trained_on="nothing")


def boxes_request(reference: Reference, kind: str, registry: Registry) -> Request:
    """Return the boxes submission of a localizer that sees no image, for every finding on every image.

    Args:
        reference: the definition version.
        kind: `whole-image`; `mean-box`, the mean of the other images' boxes of the finding; or `tiny-box`, 6 x 6
            pixels at the centre of that.
        registry: where its tables are.

    Raises:
        RegistryError: if the table is missing or altered.
        SubmissionError: if the definition has no protocol `boxes`, or the kind is none of these.
    """
    lock = registry.read_lock(reference)
    need = _need(lock, "boxes")
    if kind not in BOX_BASELINES or need.frame is None:
        message = f"unknown baseline '{kind}'; there are {listed(BOX_BASELINES)}"
        raise SubmissionError(Issue("submission-field", "--kind", message))
    width, height = need.frame
    (subset,) = need.subsets
    table = registry.read_table(lock.reference, subset, lock.tables[subset])
    lines = ["item_id\tfinding\tx\ty\tw\th"]
    for column in need.columns:
        own = [[_numbers_of(box) for box in cell.split(";") if box] for cell in table.column(column.name)]
        for item, mean in zip(table.item_ids, _means_of_others(own), strict=True):
            box = _baseline_box(kind, mean, width, height)
            if box:
                lines.append("\t".join((item, column.name, *map(repr, box))))
    card = {"model_name": kind, "description": BOX_BASELINES[kind]}
    form = {"format": "xywh", "width_px": width, "height_px": height}
    data = ("\n".join(lines) + "\n").encode()
    return Request(lock.reference, kind, "boxes", data, "predictions.tsv", boxes=form, card=card, trained_on="nothing")


def answers_request(reference: Reference, kind: str, registry: Registry, *, fit_on: str = "validation") -> Request:
    """Return the answers of a system that sees neither image nor question.

    Args:
        reference: the definition version.
        kind: `always-yes`; `always-no`; or `majority`, per question type the most frequent reference answer of another
            subset, by its words (ties: code-point order).
        registry: where its tables are.
        fit_on: for `majority`, that subset.

    Raises:
        RegistryError: if a table is missing or altered, or there is no such subset.
        SubmissionError: if the definition has no protocol `answers`, or the kind is none of these.
    """
    lock = registry.read_lock(reference)
    need = _need(lock, "answers")
    if kind not in ANSWER_BASELINES:
        message = f"unknown baseline '{kind}'; there are {listed(ANSWER_BASELINES)}"
        raise SubmissionError(Issue("submission-field", "--kind", message))
    usual = _usual_answers(lock, fit_on, registry) if kind == "majority" else {}
    rows: dict[str, list[str]] = {}
    for subset in need.subsets:
        table = registry.read_table(lock.reference, subset, lock.tables[subset])
        for item, question_type in zip(table.item_ids, table.column("question_type"), strict=True):
            rows[item] = [usual.get(question_type, "") if kind == "majority" else kind.removeprefix("always-")]
    card = {"model_name": kind, "description": ANSWER_BASELINES[kind]}
    trained_on = f"{lock.reference}:{fit_on}" if kind == "majority" else "nothing"
    data = _tsv(("item_id", "answer"), rows)
    return Request(lock.reference, kind, "answers", data, "predictions.tsv", card=card, trained_on=trained_on)


def _usual_answers(lock: Lock, subset: str, registry: Registry) -> dict[str, str]:
    """Return the most frequent reference answer of every question type, by its words."""
    from cxrspec.metrics import words

    if subset not in lock.subsets:
        message = f"no subset '{subset}' to find the usual answers in; it has {listed(lock.subsets)}"
        raise RegistryError(Issue("frozen-unknown", str(lock.reference), message))
    table = registry.read_table(lock.reference, subset, lock.tables[subset])
    counts: dict[str, Counter[str]] = {}
    for question_type, answer in zip(table.column("question_type"), table.column("answer"), strict=True):
        said = words(answer)
        text = said[0] if said[:1] in (["yes"], ["no"]) else " ".join(said)
        counts.setdefault(question_type, Counter())[text] += 1
    return {name: min(found, key=lambda text: (-found[text], text)) for name, found in counts.items()}


ANSWER_BASELINES: Final = {
    "always-yes": "The answer yes to every question; it sees no image.",
    "always-no": "The answer no to every question; it sees no image.",
    "majority": "Per question type, the most frequent reference answer of another subset; it sees no image.",
}
BOX_BASELINES: Final = {
    "whole-image": "The whole image, for every finding on every image; it sees no pixel.",
    "mean-box": "Per finding, the mean of the other images' reference boxes; it sees no pixel.",
    "tiny-box": "Per finding, 6 x 6 pixels at the centre of the mean of the other images' boxes; it sees no pixel.",
}
TINY_SIDE_PX: Final = 6


def _numbers_of(box: str) -> tuple[float, ...]:
    return tuple(map(float, box.split(",")))


def _means_of_others(boxes: Sequence[Sequence[tuple[float, ...]]]) -> list[tuple[float, ...] | None]:
    """Return, per item, the mean left, top, width and height of the boxes of all other items; None without any."""
    every = [box for of_item in boxes for box in of_item]
    totals = [math.fsum(box[i] for box in every) for i in range(4)]
    means: list[tuple[float, ...] | None] = []
    for of_item in boxes:
        count = len(every) - len(of_item)
        rest = [total - math.fsum(box[i] for box in of_item) for i, total in enumerate(totals)]
        means.append(tuple(one / count for one in rest) if count else None)
    return means


def _baseline_box(kind: str, mean: tuple[float, ...] | None, width: int, height: int) -> tuple[float, ...] | None:
    """Return left, top, width, height; None where no other image has a box of the finding."""
    if kind == "whole-image":
        return 0.0, 0.0, float(width), float(height)
    if mean is None or kind == "mean-box":
        return mean
    left, top, box_width, box_height = mean
    half = TINY_SIDE_PX / 2
    column, row = left + box_width / 2, top + box_height / 2
    x0, y0 = max(column - half, 0.0), max(row - half, 0.0)  # cut off at the border, as the protocol's tiny box is
    cut_left, cut_top = x0 - (column - half), y0 - (row - half)
    return x0, y0, min(TINY_SIDE_PX - cut_left, width - x0), min(TINY_SIDE_PX - cut_top, height - y0)


def _need(lock: Lock, protocol: str) -> PredictionNeed:
    task = task_of(lock)
    if protocol not in task.protocol_names:
        message = f"{lock.reference} has no protocol '{protocol}', which this baseline is for"
        hint = f"It has {listed(task.protocol_names)}"
        raise SubmissionError(Issue("submission-field", str(lock.reference), message, hint))
    return task.prediction_need(protocol)


def _covariates(lock: Lock, subset: str, registry: Registry) -> Table:
    digest = lock.tables.get(f"{subset}.covariates")
    if digest is None:
        message = f"{lock.reference} froze no covariates"
        hint = "A definition names them under items.covariates"
        raise RegistryError(Issue("column-missing", f"subset {subset}", message, hint))
    return registry.read_table(lock.reference, f"{subset}.covariates", digest)


def _column(table: Table, name: str) -> list[str]:
    if name not in table.header[1:]:
        message = f"no covariate '{name}'; frozen are {listed(table.header[1:])}"
        raise RegistryError(Issue("column-missing", "covariates", message))
    return table.column(name)


def _numbers(table: Table, name: str, read: Callable[[str], float | None]) -> list[float]:
    values = [read(cell) for cell in _column(table, name)]
    if missing := [item for item, value in zip(table.item_ids, values, strict=True) if value is None]:
        message = f"{len(missing):,} items have no usable '{name}': {listed(missing, IDS_LISTED)}"
        hint = "Nothing is filled in; a definition without these items can have this baseline"
        raise SubmissionError(Issue("prediction-value", "covariates", message, hint))
    return [value for value in values if value is not None]


def _is_male(cell: str) -> float | None:
    return {"M": 1.0, "F": 0.0, "MALE": 1.0, "FEMALE": 0.0}.get(cell.upper())


def _is_ap(cell: str) -> float | None:
    return {"AP": 1.0, "PA": 0.0}.get(cell.upper())


def _log_follow_up(cell: str) -> float | None:
    return math.log1p(int(cell)) if cell.isascii() and cell.isdigit() else None


_FEATURES: Final[dict[str, Callable[[str], float | None]]] = {
    "age": age_years,
    "sex": _is_male,
    "view": _is_ap,
    "follow_up": _log_follow_up,
}
_COLUMNS: Final = ("age_years", "is_male", "is_ap", "log_follow_up")


def _tsv(header: Sequence[str], rows: Mapping[str, Sequence[str]]) -> bytes:
    lines = ["\t".join(header), *("\t".join((item, *rows[item])) for item in sorted(rows))]
    return ("\n".join(lines) + "\n").encode()
