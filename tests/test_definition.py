"""Definitions: which fields change the digest, which never do, and the rules between fields."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest

from cxrspec.definition import Definition, parse_definition
from cxrspec.digest import sha256_hex
from cxrspec.expectations import Expected
from cxrspec.field_errors import is_fields, union_arms
from cxrspec.fields import Fields
from cxrspec.loader import load_definition
from cxrspec.tasks import TASKS
from tiny import TINY

SPECS = sorted((Path(__file__).parent.parent / "specs").glob("*/*.yaml"))
SHA, OTHER_SHA, COMMIT, OTHER_COMMIT = "a" * 64, "b" * 64, "c" * 40, "d" * 40
ABOUT = {"licence": "CC0", "attribution": "nobody"}
INTERVAL = {"method": "bootstrap", "unit": "item", "resamples": 100, "level": 0.95}


def wide() -> dict[str, Any]:
    """Return a definition that uses every kind of source and selection, and labels from a separated list."""
    document = copy.deepcopy(TINY)
    document["sources"] |= {
        "wheel": {"kind": "wheel", "package": "p", "version": "1", "sha256": SHA, "files": {"a": "a.csv"}, **ABOUT},
        "url": {"kind": "url", "files": {"a": {"url": "https://a.b/c", "sha256": SHA}}, **ABOUT},
        "hub": {"kind": "hf_dataset", "repository": "a/b", "revision": COMMIT, "files": {"a": "a.csv"}, **ABOUT},
    }
    document["labels"]["vocabulary"] = ["Edema", "Mass", "Effusion", "Nodule"]
    document["subsets"]["women"] = {
        "pool": {"in_list": "tiny/test_list", "where": {"column": "View Position", "one_of": "AP"}},
        "select": {"where": {"column": "Patient Gender", "one_of": ["F"]}},
    }
    pair = {"positive": "there", "negative": "not there"}
    document["protocols"]["zero_shot"] = {"prompts": {name: dict(pair) for name in document["findings"]}}
    document["metrics"][0]["interval"] = [dict(INTERVAL)]
    document["expect"]["test"] = {"items": {"value": 12}, "positives": {"edema": 4}, "pool": {"items": 12}}
    return document


def columns() -> dict[str, Any]:
    """Return a definition with one label column per finding, and groups from the item id."""
    document = wide()
    document["labels"] = {"encoding": "four_value", "source": "tiny/numbers"}
    document["items"]["group_id"] = {"pattern": "^(........)_"}
    return document


def namesake() -> dict[str, Any]:
    """Return a definition whose source is not the only one of its name."""
    document = wide()
    document["sources"]["tiny"]["namesakes"] = [{"title": "One", "doi": "10.1/2", "size": "2 rows"}]
    return document


ANSWER_METRIC: dict[str, Any] = {
    "name": "accuracy",
    "kind": "accuracy",
    "protocol": "answers",
    "reading": "strict",
    "interval": dict(INTERVAL),
}


def asked() -> dict[str, Any]:
    """Return a definition of the vqa task that uses each of its fields."""
    document = copy.deepcopy(TINY)
    for name in ("labels", "protocols", "metrics", "findings", "expect"):
        del document[name]
    return document | {
        "task": "vqa",
        "columns": {"question": "q", "answer": "a", "question_type": "t", "condition": "c", "image": "i"},
        "closed_ended": {"by": "column", "column": "k", "one_of": ["closed"], "open": ["open"]},
        "question_types": {"size": "Size"},
        "conditions": {"edema": ["Edema", "Oedema"]},
        "phrases": {"affirmative": ["there is"], "negative": "absent", "refusal": ["i cannot"]},
        "protocols": {"answers": {"prompt": "Answer briefly."}},
        "metrics": [copy.deepcopy(ANSWER_METRIC)],
    }


def cases() -> dict[str, Any]:
    """Return a definition of the cases task that uses each of its fields."""
    document = asked()
    for name in ("columns", "closed_ended", "question_types", "phrases", "protocols", "metrics"):
        del document[name]
    selected = {"pool": {}, "select": {"per_condition": {"Edema": 2}}}
    return document | {"task": "cases", "labeler": "chexpert", "labels": "tiny/numbers", "subsets": {"test": selected}}


# (Model.field, base, path to the value, another valid value, whether that can change a score)
BOX_METRIC: dict[str, Any] = {
    "name": "afp",
    "kind": "afp",
    "protocol": "boxes",
    "criterion": "iobb",
    "at": [0.1],
    "correct": ">",
    "afp_unit": "box_row",
    "average": "macro",
    "interval": dict(INTERVAL),
}


def boxed() -> dict[str, Any]:
    """Return a definition of the localization task that uses each of its fields."""
    document = copy.deepcopy(TINY)
    for name in ("labels", "protocols", "metrics", "findings", "expect"):
        del document[name]
    return document | {
        "task": "localization",
        "findings": {"mass": "Mass"},
        "boxes": {"source": "tiny/numbers", "finding": "F", "left": "x", "top": "t", "width": "w", "height": "h"},
        "frame": {"width_px": 8, "height_px": 8},
        "protocols": {
            "heatmaps": {
                "upsampling": "bilinear",
                "thresholds": [60, 180],
                "comparison": ">",
                "connectivity": 8,
                "images": "all",
            },
            "boxes": {"images": "all"},
        },
        "metrics": [copy.deepcopy(BOX_METRIC), copy.deepcopy(BOX_METRIC) | {"name": "map", "protocol": "heatmaps"}],
    }


READERS_METRIC: dict[str, Any] = {
    "name": "readers",
    "kind": "readers_below_curve",
    "protocol": "zero_shot",
    "average": "macro",
    "curve": "roc",
    "line": "step",
    "ties": "strict",
}


def read() -> dict[str, Any]:
    """Return a definition of studies with readers, some of whom are the reference standard."""
    document = columns()
    document["items"]["unit"] = "study"
    document["labels"] |= {"majority_of": "reference"}
    document["readers"] = {
        "comparison": {"bc4": "tiny/readers"},
        "reference": {"bc1": "tiny/labels", "bc2": "url", "bc3": "tiny/test_list"},
    }
    document["metrics"].append(dict(READERS_METRIC))
    document["metrics"][0]["interval"] = [dict(INTERVAL), {"method": "delong", "level": 0.95}]
    return document


EDITS: list[tuple[str, Any, str, Any, bool]] = [
    ("Definition.benchmark", wide, "benchmark", "small", False),
    ("Definition.definition_version", wide, "definition_version", "v2", False),
    ("Definition.title", wide, "title", "Other", False),
    ("Definition.description", wide, "description", "New", False),
    ("Definition.supersedes", wide, "supersedes", "v0", False),
    ("Definition.change", wide, "change", "New", False),
    ("Definition.seed", wide, "seed", 8, True),
    ("Definition.sources", wide, "sources/more", {"kind": "file", "files": {"a": "a"}, **ABOUT}, True),
    ("Definition.items", wide, "items/prefix", None, True),
    ("Definition.splits", wide, "splits/rest", {}, True),
    ("Definition.subsets", wide, "subsets/all", {"pool": {}, "select": "all"}, True),
    ("Definition.expect", wide, "expect/women", {"items": 3}, False),
    ("Definition.caveats", wide, "caveats", ["New"], False),
    ("Definition.citations", wide, "citations", ["New"], False),
    ("Definition.task", wide, "labels/separator", ";", True),
    *((f"{kind}.licence", wide, f"sources/{name}/licence", "MIT", False) for kind, name in (
        ("WheelSource", "wheel"), ("UrlSource", "url"), ("HubSource", "hub"), ("FileSource", "tiny"))),
    *((f"{kind}.attribution", wide, f"sources/{name}/attribution", "us", False) for kind, name in (
        ("WheelSource", "wheel"), ("UrlSource", "url"), ("HubSource", "hub"), ("FileSource", "tiny"))),
    *((f"{kind}.redistribute", wide, f"sources/{name}/redistribute", False, False) for kind, name in (
        ("WheelSource", "wheel"), ("UrlSource", "url"), ("HubSource", "hub"), ("FileSource", "tiny"))),
    *((f"{kind}.files", wide, f"sources/{name}/files/b", value, True) for kind, name, value in (
        ("WheelSource", "wheel", "b.csv"), ("UrlSource", "url", {"url": "https://x.y", "sha256": SHA}),
        ("HubSource", "hub", "b.csv"), ("FileSource", "tiny", "b.csv"))),
    ("WheelSource.package", wide, "sources/wheel/package", "q", False),
    ("WheelSource.version", wide, "sources/wheel/version", "2", False),
    ("WheelSource.sha256", wide, "sources/wheel/sha256", OTHER_SHA, True),
    ("PinnedPath.path", wide, "sources/wheel/files/a", "b.csv", True),
    ("PinnedPath.sha256", wide, "sources/wheel/files/a", {"path": "a.csv", "sha256": SHA}, True),
    ("HubPath.quotes", wide, "sources/hub/files/a", {"path": "a.csv", "quotes": "plain"}, True),
    ("HubPath.path", wide, "sources/hub/files/a", "b.csv", True),
    ("HubPath.sha256", wide, "sources/hub/files/a", {"path": "a.csv", "sha256": SHA}, True),
    ("HubPath.shards", wide, "sources/hub/files/a", {"shards": ["a.csv"]}, True),
    ("HubPath.match", wide, "sources/hub/files/a", {"match": "*.parquet", "count": 2}, True),
    ("HubPath.count", wide, "sources/hub/files/a", {"match": "a.csv", "count": 1}, True),
    ("PinnedUrl.url", wide, "sources/url/files/a/url", "https://mirror", False),
    ("PinnedUrl.sha256", wide, "sources/url/files/a/sha256", OTHER_SHA, True),
    ("HubSource.repository", wide, "sources/hub/repository", "c/d", False),
    ("HubSource.revision", wide, "sources/hub/revision", OTHER_COMMIT, True),
    ("PinnedPath.quotes", wide, "sources/hub/files/a", {"path": "a.csv", "quotes": "plain"}, True),
    ("PinnedUrl.quotes", wide, "sources/url/files/a/quotes", "plain", True),
    ("LocalPath.quotes", wide, "sources/tiny/files/labels", {"path": "data/labels.csv", "quotes": "plain"}, True),
    ("FileSource.doi", wide, "sources/tiny/doi", "10.1/2", True),
    ("FileSource.namesakes", wide, "sources/tiny/namesakes", [{"title": "Another"}], False),
    ("DataSet.title", namesake, "sources/tiny/namesakes", [{"title": "Another"}], False),
    ("DataSet.doi", namesake, "sources/tiny/namesakes", [{"title": "One", "doi": "10.1/3"}], False),
    ("DataSet.size", namesake, "sources/tiny/namesakes", [{"title": "One", "size": "3 rows"}], False),
    ("LocalPath.path", wide, "sources/tiny/files/labels", "elsewhere.csv", False),
    ("LocalPath.sha256", wide, "sources/tiny/files/labels", {"path": "data/labels.csv", "sha256": SHA}, True),
    ("Items.unit", wide, "items/unit", "study", True),
    ("Items.aggregate", read, "items/aggregate", "mean", True),
    ("Items.source", wide, "items/source", "tiny/train_list", True),
    ("Items.item_id", wide, "items/item_id/column", "Image", True),
    ("Items.group_id", wide, "items/group_id/column", "Patient", True),
    ("Items.covariates", wide, "items/covariates/follow_up", "Follow-up #", True),
    ("Items.joins", wide, "items/joins/tiny~readers", "Id", True),
    ("ItemIdField.column", wide, "items/item_id/column", "Image", True),
    ("ItemIdField.form", wide, "items/item_id/form", "text", True),
    ("ItemIdField.strip_suffix", wide, "items/item_id/strip_suffix", ".png", True),
    ("ItemIdField.prefix", wide, "items/item_id/prefix", "x-", True),
    ("ItemIdField.numbered_by", wide, "items/item_id/numbered_by", "Follow-up #", True),
    ("GroupIdField.column", wide, "items/group_id/column", "Patient", True),
    ("GroupIdField.pattern", columns, "items/group_id/pattern", "^(.)", True),
    ("Column.column", wide, "items/covariates/age", "Age", True),
    ("Column.source", wide, "items/covariates/age", {"column": "Patient Age", "source": "tiny/readers"}, True),
    ("Conditions.in_list", wide, "splits/test/in_list", "tiny/train_list", True),
    ("Conditions.where", wide, "splits/test/where", {"column": "Set", "one_of": "test"}, True),
    ("Pool.split", wide, "subsets/test/pool/split", "train", True),
    ("Pool.in_list", wide, "subsets/test/pool/in_list", "tiny/train_list", True),
    ("Pool.where", wide, "subsets/test/pool/where", {"column": "Set", "one_of": "test"}, True),
    ("ItemList.source", wide, "splits/test/in_list", "tiny/train_list", True),
    ("ItemList.column", wide, "splits/test/in_list", {"source": "tiny/test_list", "column": "id"}, True),
    ("ItemList.unknown_ids", wide, "splits/test/in_list", {"source": "tiny/test_list", "unknown_ids": "ignored"}, True),
    ("Where.column", wide, "subsets/women/pool/where/column", "Set", True),
    ("Where.one_of", wide, "subsets/women/pool/where/one_of", ["AP", "PA"], True),
    ("Subset.pool", wide, "subsets/test/pool", {}, True),
    ("Subset.select", wide, "subsets/women/select", "all", True),
    ("Subset.disjoint_from", wide, "subsets/train/disjoint_from", "women", True),
    ("Subset.disjoint_by", wide, "subsets/train/disjoint_by", "item_id", True),
    ("Subset.contained_in", wide, "subsets/test/contained_in", ["tiny@v1:test"], False),
    ("Subset.same_as", wide, "subsets/test/same_as", ["tiny@v1:test"], False),
    ("Subset.upstream_id", wide, "subsets/test/upstream_id", "53236fd1", False),
    ("Select.all", wide, "subsets/women/select", {"all": True}, True),
    ("Select.where", wide, "subsets/women/select/where/one_of", "M", True),
    ("Select.in_list", wide, "subsets/women/select", {"in_list": "tiny/test_list"}, True),
    ("Select.stratified", wide, "subsets/women/select", {"stratified": {"size": 3}}, True),
    ("Select.per_condition", wide, "subsets/women/select", {"per_condition": {"edema": 1}}, True),
    ("Stratified.size", wide, "subsets/train/select/stratified/size", 11, True),
    ("Stratified.minimum_positives", wide, "subsets/train/select/stratified/minimum_positives", 2, True),
    ("Expectations.items", wide, "expect/test/items", 3, False),
    ("Expectations.groups", wide, "expect/test/groups", 3, False),
    ("Expectations.images", wide, "expect/test/images", 3, False),
    ("PoolExpectations.images", wide, "expect/test/pool/images", 3, False),
    ("Expectations.covariates", wide, "expect/test/covariates", {"sex": {"F": 3}}, False),
    ("Expectations.tallies", wide, "expect/test/positives/edema", 3, False),
    ("Expectations.cells", wide, "expect/test/cells", {"tiny-1": {"edema": 1}}, False),
    ("Expectations.pool", wide, "expect/test/pool", {"items": 3}, False),
    ("PoolExpectations.items", wide, "expect/test/pool/items", 3, False),
    ("PoolExpectations.groups", wide, "expect/test/pool/groups", 3, False),
    ("PoolExpectations.covariates", wide, "expect/test/pool/covariates", {"sex": {"F": 3}}, False),
    ("PoolExpectations.tallies", wide, "expect/test/pool/none", 3, False),
    ("Expected.value", wide, "expect/test/items/value", 3, False),
    ("Expected.within", wide, "expect/test/items/within", 3, False),
    ("Expected.any_of", wide, "expect/test/items", {"any_of": [3]}, False),
    ("Expected.stated", wide, "expect/test/items", {"stated": {"here": 3, "there": 4}}, False),
    ("Expected.note", wide, "expect/test/items/note", "doubtful", False),
    ("FindingsTask.findings", wide, "findings/edema", "Nodule", True),
    ("FindingsTask.aliases", wide, "aliases", {"edema": ["Oedema"]}, True),
    ("FindingsTask.labels", wide, "labels/negative", "None", True),
    ("FindingsTask.readers", read, "readers/comparison/bc6", "hub", True),
    ("FindingsTask.protocols", wide, "protocols/probe/standardize", False, True),
    ("FindingsTask.metrics", wide, "metrics/0/name", "other", True),
    ("SeparatedLabels.column", wide, "labels/column", "Labels", True),
    ("SeparatedLabels.separator", wide, "labels/separator", ";", True),
    ("SeparatedLabels.negative", wide, "labels/negative", "None", True),
    ("SeparatedLabels.vocabulary", wide, "labels/vocabulary", ["Edema", "Mass", "Effusion"], True),
    ("ColumnLabels.encoding", columns, "labels/encoding", "yes_no", True),
    ("ColumnLabels.source", columns, "labels/source", "tiny/readers", True),
    ("ColumnLabels.vocabulary", read, "labels/vocabulary", ["Edema", "Mass", "Effusion", "Fracture"], True),
    ("ColumnLabels.majority_of", read, "labels/majority_of", None, True),
    ("Readers.comparison", read, "readers/comparison/bc4", "hub", True),
    ("Readers.reference", read, "readers/reference/bc1", "hub", True),
    ("ReadersMetric.name", read, "metrics/2/name", "other", True),
    ("ReadersMetric.protocol", read, "metrics/3", READERS_METRIC | {"name": "more", "protocol": "probe"}, True),
    ("ReadersMetric.curve", read, "metrics/2/curve", "both", True),
    ("ReadersMetric.line", read, "metrics/2/line", "interpolated", True),
    ("ReadersMetric.ties", read, "metrics/2/ties", "inclusive", True),
    ("ReadersMetric.subset", read, "metrics/2/subset", "women", True),
    ("DeLongInterval.level", read, "metrics/0/interval/1/level", 0.9, True),
    ("Protocols.zero_shot", wide, "protocols/zero_shot/prompts", None, True),
    ("Protocols.probe", wide, "protocols/probe/folds", 4, True),
    ("ZeroShot.prompts", wide, "protocols/zero_shot/prompts", None, True),
    ("ZeroShot.similarity", wide, "protocols/zero_shot/similarity", "dot_difference", True),
    ("Prompts.positive", wide, "protocols/zero_shot/prompts/edema/positive", "edema", True),
    ("Prompts.negative", wide, "protocols/zero_shot/prompts/edema/negative", "no edema", True),
    ("Probe.fit_on", wide, "protocols/probe/fit_on", "women", True),
    ("Probe.standardize", wide, "protocols/probe/standardize", False, True),
    ("Probe.C", wide, "protocols/probe/C", [0.1], True),
    ("Probe.folds", wide, "protocols/probe/folds", 4, True),
    ("Probe.solver", wide, "protocols/probe/solver", "newton-cg", True),
    ("Probe.max_iter", wide, "protocols/probe/max_iter", 99, True),
    ("Probe.tol", wide, "protocols/probe/tol", 1e-6, True),
    ("Probe.class_weight", wide, "protocols/probe/class_weight", "balanced", True),
    ("Probe.uncertain", wide, "protocols/probe/uncertain", "U-Ones", True),
    ("Probe.tolerance", wide, "protocols/probe/tolerance", 1e-6, True),
    ("Metric.name", wide, "metrics/0/name", "other", True),
    ("Metric.kind", wide, "metrics/0/kind", "average_precision", True),
    ("Metric.protocol", wide, "metrics/2", {**TINY["metrics"][1], "name": "third", "protocol": "zero_shot"}, True),
    ("Metric.subset", wide, "metrics/0/subset", "women", True),
    ("Metric.interval", wide, "metrics/0/interval", [INTERVAL, {**INTERVAL, "unit": "group"}], True),
    ("Metric.strata", wide, "metrics/0/strata", {"view": "values"}, True),
    ("Strata.values", wide, "metrics/0/strata", {"age": "values"}, True),
    ("Strata.bands", wide, "metrics/0/strata", {"age": [0, 40]}, True),
    ("Interval.unit", wide, "metrics/0/interval/0/unit", "group", True),
    ("Interval.resamples", wide, "metrics/0/interval/0/resamples", 101, True),
    ("Interval.level", wide, "metrics/0/interval/0/level", 0.9, True),
    ("Interval.max_left_out", wide, "metrics/0/interval/0/max_left_out", 0.5, True),
    ("LocalizationTask.findings", boxed, "findings/mass", "Tumour", True),
    ("LocalizationTask.aliases", boxed, "aliases", {"mass": ["Tumour"]}, True),
    ("LocalizationTask.boxes", boxed, "boxes/left", "x0", True),
    ("LocalizationTask.frame", boxed, "frame", {"width_px": 9, "height_px": 9}, True),
    ("LocalizationTask.protocols", boxed, "protocols/boxes/images", "with_finding", True),
    ("LocalizationTask.metrics", boxed, "metrics/0/name", "other", True),
    *((f"BoxColumns.{name}", boxed, f"boxes/{name}", value, True) for name, value in (
        ("source", "tiny/readers"), ("finding", "f"), ("left", "l"), ("top", "u"), ("width", "b"), ("height", "d"))),
    ("Frame.width_px", boxed, "frame/width_px", 9, True),
    ("Frame.height_px", boxed, "frame/height_px", 9, True),
    ("BoxProtocols.heatmaps", boxed, "protocols/heatmaps/connectivity", 4, True),
    ("BoxProtocols.boxes", boxed, "protocols/boxes/images", "with_finding", True),
    ("Heatmaps.upsampling", boxed, "protocols/heatmaps/upsampling", "nearest", True),
    ("Heatmaps.thresholds", boxed, "protocols/heatmaps/thresholds", [60], True),
    ("Heatmaps.comparison", boxed, "protocols/heatmaps/comparison", ">=", True),
    ("Heatmaps.connectivity", boxed, "protocols/heatmaps/connectivity", 4, True),
    ("Heatmaps.images", boxed, "protocols/heatmaps/images", "with_finding", True),
    ("PredictedBoxes.images", boxed, "protocols/boxes/images", "with_finding", True),
    ("BoxMetric.name", boxed, "metrics/0/name", "other", True),
    ("BoxMetric.kind", boxed, "metrics/0", BOX_METRIC | {"kind": "acc", "afp_unit": None}, True),
    ("BoxMetric.protocol", boxed, "metrics/2", BOX_METRIC | {"name": "third", "protocol": "heatmaps"}, True),
    ("BoxMetric.criterion", boxed, "metrics/0/criterion", "iou", True),
    ("BoxMetric.at", boxed, "metrics/0/at", [0.5], True),
    ("BoxMetric.correct", boxed, "metrics/0/correct", ">=", True),
    ("BoxMetric.afp_unit", boxed, "metrics/0/afp_unit", "image", True),
    ("BoxMetric.subset", boxed, "metrics/0/subset", "test", True),
    ("BoxMetric.interval", boxed, "metrics/0/interval", [INTERVAL, {**INTERVAL, "unit": "group"}], True),
    ("CasesTask.labeler", cases, "labeler", "negbio", True),
    ("CasesTask.labels", cases, "labels", "tiny/readers", True),
    ("CasesTask.conditions", cases, "conditions/edema", ["Edema", "Effusion"], True),
    *((f"QuestionColumns.{name}", asked, f"columns/{name}", "x", True) for name in (
        "question", "answer", "question_type", "condition", "image")),
    ("ClosedEnded.by", asked, "closed_ended", {"by": "leading_yes_no"}, True),
    ("ClosedEnded.column", asked, "closed_ended/column", "x", True),
    ("ClosedEnded.one_of", asked, "closed_ended/one_of", "yes/no", True),
    ("ClosedEnded.open", asked, "closed_ended/open", "free", True),
    ("VqaTask.columns", asked, "columns/answer", "x", True),
    ("VqaTask.closed_ended", asked, "closed_ended/one_of", "yes/no", True),
    ("VqaTask.question_types", asked, "question_types/size", "Extent", True),
    ("VqaTask.conditions", asked, "conditions/edema", "Oedema", True),
    ("VqaTask.phrases", asked, "phrases/negative", "none", True),
    ("VqaTask.protocols", asked, "protocols/answers/prompt", "Answer.", True),
    ("VqaTask.metrics", asked, "metrics/0/name", "other", True),
    *((f"Phrases.{name}", asked, f"phrases/{name}", ["something else"], True) for name in (
        "affirmative", "negative", "refusal")),
    ("AnswerProtocols.answers", asked, "protocols/answers/prompt", "Answer.", True),
    ("FreeText.prompt", asked, "protocols/answers/prompt", "Answer.", True),
    ("AnswerMetric.name", asked, "metrics/0/name", "other", True),
    ("AnswerMetric.kind", asked, "metrics/0/kind", "yes_rate", True),
    ("AnswerMetric.reading", asked, "metrics/0/reading", "lenient", True),
    ("AnswerMetric.subset", asked, "metrics/0/subset", "test", True),
    ("AnswerMetric.interval", asked, "metrics/0/interval", [INTERVAL, {**INTERVAL, "unit": "group"}], True),
]  # fmt: skip
ONE_VALUE = {
    *("WheelSource.kind", "UrlSource.kind", "HubSource.kind", "FileSource.kind", "SeparatedLabels.encoding"),
    *("Probe.select_by", "Metric.average", "BoxMetric.average", "AnswerMetric.protocol", "Interval.method"),
    *("ReadersMetric.kind", "ReadersMetric.average", "DeLongInterval.method"),
}
"""Required fields of which one value is allowed today; the digest holds them, so a second value will change it."""


def fields_of(annotation: Any) -> Iterator[tuple[str, Any]]:
    """Yield (`Model.field`, its type) of every field that a definition can hold."""
    for arm in union_arms(annotation):
        if is_fields(arm):
            for name, field in arm.model_fields.items():
                yield f"{arm.__name__}.{name}", field.annotation
                yield from fields_of(field.annotation)
        elif get_origin(arm) in (dict, list):
            for part in get_args(arm):
                yield from fields_of(part)


ALL_FIELDS = {name: kind for top in (Definition, *TASKS.values()) for name, kind in fields_of(top)}


def parsed(document: Mapping[str, Any]) -> Definition:
    """Parse a definition that has no issue."""
    definition, issues = parse_definition(document)
    assert [] == issues
    assert definition is not None
    return definition


def edited(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Set a value at a path (`~` stands for a slash in a name); None removes it."""
    *above, last = [int(step) if step.isdigit() else step.replace("~", "/") for step in path.split("/")]
    here: Any = document
    for step in above:
        here = here[step]
    if isinstance(here, list):
        here[last : last + 1] = [value]  # type: ignore[misc]
    elif value is None:
        here = here.get("item_id", here)
        del here[last]
    else:
        here[last] = value
    return document


def shuffled(value: Any) -> Any:
    """Reverse the order of the keys of every mapping; lists keep theirs."""
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


def codes(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the code of the issue at each path."""
    return {"/".join(map(str, issue.path)): issue.code for issue in parse_definition(document)[1]}


@pytest.mark.parametrize(("field", "base", "path", "value", "changes"), EDITS, ids=[edit[0] for edit in EDITS])
def test_a_field_changes_the_digest_if_it_can_change_a_score(
    field: str, base: Any, path: str, value: Any, changes: bool
) -> None:
    """Content pins, items, selection, seed, protocols, prompts and metrics do; locations, words and claims do not."""
    before, after = parsed(base()), parsed(edited(base(), path, value))
    assert changes == (before.digest != after.digest)
    assert before.model_dump() != after.model_dump()


def test_every_field_is_edited_above() -> None:
    """A new field of a definition must say here whether it can change a score."""
    assert set(ALL_FIELDS) == {edit[0] for edit in EDITS} | ONE_VALUE


@pytest.mark.parametrize("field", sorted(ONE_VALUE))
def test_a_field_of_one_value_is_in_the_digest(field: str) -> None:
    """What cannot be edited yet is hashed all the same."""
    (value,) = get_args(ALL_FIELDS[field])
    documents = [parsed(read()).score_relevant(), parsed(wide()).score_relevant(), parsed(asked()).score_relevant()]
    assert f'"{field.partition(".")[2]}": "{value}"' in json.dumps(documents)


def test_a_field_that_is_added_later_moves_no_digest() -> None:
    """An optional field that is absent leaves no trace, so old digests hold."""

    class Old(Fields):
        a: int

    class New(Old):
        b: int | None = None

    assert Old(a=1).score_relevant() == New(a=1).score_relevant()


def test_h1_key_order_changes_nothing() -> None:
    """H1: a definition whose keys stand the other way round, at every depth, has the same digest."""
    for document in (wide(), columns()):
        assert parsed(document).digest == parsed(shuffled(document)).digest


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_h1_the_key_order_of_our_own_definitions_changes_nothing(path: Path) -> None:
    """H1: none of the definitions in specs/ depends on the order in which it was written."""
    from cxrspec.strict_yaml import load_document

    document, _, _ = load_document(path, shown_as=path.name)
    assert load_definition(path).digest == parsed(shuffled(document)).digest


def test_the_digest_is_that_of_sorted_compact_json() -> None:
    """A stranger recomputes it from the lock with a JSON library: ASCII text and plain numbers need no RFC 8785."""
    definition = parsed(edited(wide(), "protocols/probe/tol", 0.25))
    text = json.dumps(definition.score_relevant(), sort_keys=True, separators=(",", ":"))
    assert sha256_hex(text.replace('"C":[0.1,1.0]', '"C":[0.1,1]').encode()) == definition.digest


def test_whole_numbers_and_decimals_are_one_number() -> None:
    """`C: [1]` is `C: [1.0]`."""
    first, second = (parsed(edited(wide(), "protocols/probe/C", [one])) for one in (1, 1.0))
    assert first.digest == second.digest


def test_short_forms_are_their_long_forms() -> None:
    """`all`, a column's name, one condition and one interval mean what they are short for."""
    document = wide()
    document["subsets"]["test"]["select"] = {"all": True}
    document["items"]["covariates"]["age"] = {"column": "Patient Age"}
    document["splits"]["test"]["in_list"] = {"source": "tiny/test_list"}
    document["metrics"][1]["interval"] = [document["metrics"][1]["interval"]]
    document["subsets"]["women"]["pool"]["where"] = [document["subsets"]["women"]["pool"]["where"]]
    assert parsed(wide()).digest == parsed(document).digest


@pytest.mark.parametrize("name", ["source", "split", "in_list", "pool", "disjoint_from", "joins", "column", "files"])
def test_a_name_that_is_a_word_of_the_format_is_no_mention(name: str) -> None:
    """A covariate, finding, split or subset may be called like a field; only what the field says is looked up."""
    document = wide()
    document["items"]["covariates"][name] = "Follow-up #"
    document["findings"][name] = "Nodule"
    document["protocols"]["zero_shot"]["prompts"][name] = {"positive": "one", "negative": "none"}
    document["aliases"] = {name: ["Nodules"]}
    document["splits"][name] = {"where": {"column": "Set", "one_of": "x"}}
    document["subsets"][name] = {"pool": {"split": name}, "select": "all"}
    document["expect"][name] = {"positives": {name: 1}, "covariates": {name: {"0": 1}}}
    assert {} == codes(document)


@pytest.mark.parametrize("name", ["source", "files", "kind", "labels"])
def test_a_source_may_be_called_like_a_field(name: str) -> None:
    """A source and its file named alike are declared, and found."""
    document = wide()
    document["sources"][name] = {"kind": "file", "files": {name: "x.csv"}, **ABOUT}
    document["items"]["covariates"]["age"] = {"source": f"{name}/{name}", "column": "Age"}
    assert {} == codes(document)


def test_a_source_of_one_file_is_named_alone() -> None:
    """`url` is enough where it has one file; a source of several files needs the file's name."""
    document = wide()
    document["splits"] |= {"one": {"in_list": "url"}, "many": {"in_list": "tiny"}}
    assert {"splits/many/in_list": "reference-unknown"} == codes(document)


def test_a_split_is_chosen_from_no_other_split() -> None:
    """A split of a split would depend on an order that the file does not have."""
    assert {"splits/test/split": "field-unknown"} == codes(edited(wide(), "splits/test/split", "train"))


def test_a_fault_of_form_is_not_also_an_unknown_name() -> None:
    """One fault, one issue."""
    assert {"subsets/train/disjoint_from": "field-value"} == codes(edited(wide(), "subsets/train/disjoint_from", "No!"))


def test_faults_of_task_and_definition_are_found_together() -> None:
    """A faulty field of the task hides none of the definition, and none of them an unknown name."""
    document = edited(edited(wide(), "seed", "x"), "metrics/0/kind", "roc")
    document["protocols"]["probe"]["fit_on"] = "trian"
    assert {"seed", "metrics/0/kind", "protocols/probe/fit_on"} == set(codes(document))


@pytest.mark.parametrize("junk", [None, 1, "x", [], {}, [[]], {"x": 1}, [{"x": [1]}]])
@pytest.mark.parametrize("field", [*Definition.model_fields, *TASKS["findings"].model_fields])
def test_junk_in_any_field_is_an_issue_and_no_crash(field: str, junk: Any) -> None:
    """Whatever stands where, the answer is a list of issues."""
    definition, issues = parse_definition({**wide(), field: junk})
    assert (definition is None) == bool(issues)


def test_a_default_subset_must_exist() -> None:
    """A metric that names no subset scores `test`, so there must be one."""
    document = wide()
    document["subsets"]["final"] = document["subsets"].pop("test")
    document["subsets"]["train"]["disjoint_from"] = "final"
    document["expect"] = {}
    assert {"metrics/0/subset", "metrics/1/subset"} == set(codes(document))


@pytest.mark.parametrize("kind", ["brier", "log_loss", "expected_calibration_error", "accuracy"])
def test_s10_no_metric_reads_a_score_as_a_probability(kind: str) -> None:
    """S10: calibrated heads are no probabilities, so a metric that would take them for some is refused."""
    assert {"metrics/0/kind": "field-value"} == codes(edited(wide(), "metrics/0/kind", kind))


def test_an_empty_protocol_is_none() -> None:
    """A protocol without its fields is not declared, and a metric cannot use it."""
    document = wide()
    document["protocols"]["probe"] = None
    assert {"metrics/1/protocol": "reference-unknown"} == codes(document)


@pytest.mark.parametrize(
    ("claim", "found", "allowed"),
    [
        ({"value": 5}, 5, True),
        ({"value": 5}, 6, False),
        ({"value": 5, "within": 1}, 4, True),
        ({"value": 5, "within": 1}, 7, False),
        ({"any_of": [5, 7]}, 7, True),
        ({"any_of": [5, 7]}, 6, False),
        ({"stated": {"here": 5, "there": 7}}, 7, True),
        ({"stated": {"here": 5, "there": 7}}, 6, False),
        ({"value": 5, "note": "doubtful"}, 6, False),
    ],
)
def test_what_a_claim_allows(claim: dict[str, Any], found: int, allowed: bool) -> None:
    """A number, a number within a difference, or one of several."""
    assert allowed == Expected(**claim).allows(found)


@pytest.mark.parametrize(
    "claim",
    [
        {},
        {"value": 1, "any_of": [1]},
        {"within": 1},
        {"any_of": [1], "within": 1},
        {"value": 1, "wihtin": 1},
        {"stated": {"here": 1}},
        {"stated": {"here": 1, "there": 2}, "value": 1},
        {"note": "doubtful"},
    ],
)
def test_a_claim_is_of_one_form(claim: dict[str, Any]) -> None:
    """A claim that is none of the forms, or two, is refused where it stands."""
    assert ["expect/test/items"] == [path[:17] for path in codes(edited(wide(), "expect/test/items", claim))]


def test_a_tally_by_finding_needs_its_findings() -> None:
    """One number for all findings says nothing."""
    assert {"expect/test/positives": "field-type"} == codes(edited(wide(), "expect/test/positives", 4))


def test_a_source_without_files_is_one_fault() -> None:
    """What refers to a source whose own fields are wrong is not wrong for that."""
    document = wide()
    del document["sources"]["tiny"]["files"]
    assert {"sources/tiny/files": "field-missing"} == codes(document)


DELONG = {"method": "delong", "level": 0.95}


@pytest.mark.parametrize(
    ("intervals", "at"),
    [
        ([INTERVAL, INTERVAL], 1),
        ([INTERVAL, {**INTERVAL, "unit": "group"}, {**INTERVAL, "level": 0.9, "resamples": 200}], 2),
        ([DELONG, INTERVAL, {**DELONG, "level": 0.9}], 2),
        ([INTERVAL, {**INTERVAL, "unit": "group"}, DELONG], None),
    ],
)
def test_intervals_that_print_alike_are_refused(intervals: list[Any], at: int | None) -> None:
    """A table says what each interval is by, and nothing else of it."""
    expected = {} if at is None else {f"metrics/0/interval/{at}": "reference-conflict"}
    assert expected == codes(edited(wide(), "metrics/0/interval", intervals))
