"""A probe from its file to its report: every form of embeddings gives scikit-learn's numbers, and it is fast enough."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from project import REF, TEST_ITEMS, TRAIN_ITEMS, Project, frozen_project, value
from test_embeddings import archive

IDS = [*TRAIN_ITEMS, *TEST_ITEMS]
EMBEDDINGS = np.random.default_rng(5).normal(size=(60, 70))
"""Wider than the training rows are many."""


def parquet() -> bytes:
    """Return the embeddings as a fixed-size list column."""
    stream = io.BytesIO()
    lists = pa.FixedSizeListArray.from_arrays(pa.array(EMBEDDINGS.ravel()), EMBEDDINGS.shape[1])
    pq.write_table(pa.table({"item_id": IDS, "embedding": lists}), stream)
    return stream.getvalue()


def columns_csv() -> bytes:
    """Return the embeddings as a column per feature, the last one first."""
    names = [f"f{at:02d}" for at in range(70)][::-1]
    lines = [f"{item},{','.join(map(repr, row[::-1].tolist()))}" for item, row in zip(IDS, EMBEDDINGS, strict=True)]
    return "\n".join([f"item_id,{','.join(names)}", *lines]).encode()


FORMS = {
    "npz": archive(item_id=np.array(IDS), embeddings=EMBEDDINGS),
    "fixed-size list": parquet(),
    "columns": columns_csv(),
}


def probed(root: Path, data: bytes) -> tuple[Project, dict[str, Any]]:
    """Return a project with a probe scored, and its report."""
    project = frozen_project(root)
    project.submit("probed", data, protocol="probe")
    project.score("probed")
    return project, project.report("probed")


@pytest.mark.parametrize("data", FORMS.values(), ids=FORMS)
def test_a_probe_is_scikit_learns_refit(tmp_path: Path, data: bytes) -> None:
    """S13: predictions at the chosen C are those of LogisticRegression within 1e-6, and so are both metrics."""
    project, report = probed(tmp_path, data)
    tables = {name: project.registry.read_table(REF, name, project.lock.tables[name]) for name in ("test", "train")}
    rows = {name: EMBEDDINGS[[IDS.index(item) for item in table.item_ids]] for name, table in tables.items()}
    for finding in ("edema", "effusion"):
        entry = report["fitted"][finding]
        labels = {name: [int(cell) for cell in table.column(finding)] for name, table in tables.items()}
        model = LogisticRegression(C=entry["C"], solver="newton-cg", tol=1e-11, max_iter=500)
        pipeline = make_pipeline(StandardScaler(), model).fit(rows["train"], labels["train"])
        expected = pipeline.decision_function(rows["test"])
        scaled = pipeline[0].transform(rows["test"])
        assert expected == pytest.approx(scaled @ entry["coefficients"] + entry["intercept"], abs=1e-6)
        for metric, outside in (("mean_auroc_probe", roc_auc_score), ("mean_ap_probe", average_precision_score)):
            assert outside(labels["test"], expected) == pytest.approx(value(report, metric, finding), abs=1e-12)
        assert entry["converged"]


def test_coefficients_have_the_names_of_their_features(tmp_path: Path) -> None:
    """A table names its features, in code-point order; lists and archives have none."""
    _, report = probed(tmp_path / "columns", FORMS["columns"])
    assert [f"f{at:02d}" for at in range(70)] == report["features"]
    assert 70 == len(report["fitted"]["edema"]["coefficients"])
    assert "features" not in probed(tmp_path / "npz", FORMS["npz"])[1]


@pytest.mark.parametrize(
    ("change", "state"),
    [
        (lambda report: report.pop("features"), "unchanged"),
        (lambda report: report["features"].reverse(), "scored"),
        (lambda report: report.update(features=3), "scored"),
    ],
    ids=["none", "others", "no list"],
)
def test_feature_names_are_compared_where_there_are_any(tmp_path: Path, change: Any, state: str) -> None:
    """A report that was written before features were named keeps its bytes; other names are mended."""
    project, _ = probed(tmp_path, FORMS["columns"])
    project.edit_json("registry/tiny/v1/reports/probed.json", change)
    assert state == project.score("probed").state
