"""History: locks and reports of every format load, verify and score to the same numbers for ever.

`tests/locks/` is append-only: a new format brings a new folder, and no file of an old one ever changes. The rows in it
are made up.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cxrspec.audit import audit_definition, audit_system
from cxrspec.digest import json_digest, sha256_hex
from cxrspec.registry import Registry
from cxrspec.report_file import read_report
from cxrspec.score import score

HISTORY = sorted(Path(__file__).parent.joinpath("locks").iterdir())


@pytest.fixture(params=HISTORY, ids=lambda folder: folder.name)
def registry(request: pytest.FixtureRequest, tmp_path: Path) -> Registry:
    """A copy of one historic registry, without the definition file that it was frozen from."""
    shutil.copytree(request.param, tmp_path / "project")
    return Registry(tmp_path / "project")


def test_historic_locks_verify(registry: Registry) -> None:
    """The digests of an old lock follow from its own content, and its tables are those that it names."""
    for reference in registry.frozen():
        links = {link.name: link.state for link in audit_definition(reference, registry).links}
        assert {"held"} == {state for name, state in links.items() if name == "lock" or name.startswith("table")}
        lock = registry.read_lock(reference)
        assert lock.definition_digest == json_digest(lock.definition)


def test_historic_reports_score_to_the_same_numbers(registry: Registry) -> None:
    """Scoring an old submission with this code leaves its report as it was, to the byte."""
    for reference in registry.frozen():
        for system in registry.systems(reference):
            before = sha256_hex(registry.report_path(reference, system).read_bytes())
            assert "unchanged" == score(reference, system, registry).state
            assert before == sha256_hex(registry.report_path(reference, system).read_bytes())
            assert read_report(registry, reference, system) is not None
            links = {link.name: link.state for link in audit_system(reference, system, registry).links}
            assert "held" == links["scored again"]
