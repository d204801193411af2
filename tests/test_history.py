"""The tree of a benchmark's versions."""

from pathlib import Path

import pytest

from cxrspec.comparison import COMPARABLE, NOT_COMPARABLE
from cxrspec.comparison.history import Node, version_tree
from project import Project, frozen_project, refusal


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project whose version v1 is frozen and committed."""
    return frozen_project(tmp_path)


def after(project: Project, version: str, older: str, *edits: tuple[str, str]) -> None:
    """Write a version that supersedes another."""
    project.define(version, ("title:", f"supersedes: {older}\ntitle:"), *edits)


def shape(nodes: list[Node]) -> dict[str, object]:
    """Return the names of a tree."""
    return {node.reference.version: shape(node.children) for node in nodes}


def test_versions_stand_below_what_they_supersede(project: Project) -> None:
    """History is a tree: two versions may follow one, and stand side by side."""
    after(project, "v2", "v1")
    after(project, "v3", "v2")
    after(project, "b1", "v1")
    assert {"v1": {"b1": {}, "v2": {"v3": {}}}} == shape(version_tree("tiny", project.registry))


def test_each_version_has_its_verdict_with_the_one_before(project: Project) -> None:
    """What was frozen, by which commit, with which subset ids, and whether its scores go with the older ones."""
    after(project, "v2", "v1", ("caveats: [It is tiny.]\n", ""))
    after(project, "v3", "v2", ("seed: 7", "seed: 8"))
    [root] = version_tree("tiny", project.registry)
    commit = project.git("rev-list", "--max-parents=0", "HEAD").strip()
    assert ("frozen", commit, project.lock.subset_ids) == (root.state, root.commit, root.subset_ids)
    [second] = root.children
    assert second.comparison is not None
    assert (COMPARABLE, "patch") == (second.comparison.verdict.verdict, second.comparison.bump.verdict)
    assert NOT_COMPARABLE == second.as_json()["superseded_by"][0]["verdict"]["verdict"]


def test_a_version_that_is_only_named_is_absent(project: Project) -> None:
    """`supersedes` may name a version that was never written here."""
    after(project, "v2", "v0")
    roots = version_tree("tiny", project.registry)
    assert {"v0": {"v2": {}}, "v1": {}} == shape(roots)
    assert ("absent", None) == (roots[0].state, roots[0].children[0].comparison)


def test_a_faulty_file_is_shown_and_stops_nothing(project: Project) -> None:
    """One bad file of a benchmark hides none of the others."""
    project.write("specs/tiny/v2.yaml", "seed: -1\n")
    roots = version_tree("tiny", project.registry)
    assert [("v1", "frozen"), ("v2", "faulty")] == [(one.reference.version, one.state) for one in roots]


@pytest.mark.parametrize("pairs", [[("a", "b"), ("b", "a")], [("a", "a")], [("a", "b"), ("b", "c"), ("c", "b")]])
def test_a_circle_is_cut(project: Project, pairs: list[tuple[str, str]]) -> None:
    """Versions that supersede each other are each shown once."""
    for version, older in pairs:
        after(project, version, older)
    text = str(shape(version_tree("tiny", project.registry)))
    assert [1] * len(pairs) == [text.count(f"'{version}'") for version, _ in pairs]


def test_the_tree_is_drawn(project: Project) -> None:
    """A terminal shows the branches, a script reads the same as JSON."""
    after(project, "v2", "v1", ("seed: 7", "seed: 8"))
    ran = project.run("history", "tiny")
    assert (0, "") == (ran.code, ran.err)
    assert ["tiny", "└── v1  frozen by commit"] == [line[:24] for line in ran.out.splitlines()[:2]]
    assert "    not comparable with v1 (major bump)" in ran.out
    roots = [one.as_json() for one in version_tree("tiny", project.registry)]
    assert roots == project.run("history", "tiny", "--json").json


def test_an_unknown_benchmark_is_refused(project: Project) -> None:
    """The ones that there are stand in the message."""
    assert [("frozen-unknown", "other: is no benchmark here; there are tiny")] == refusal(
        lambda: version_tree("other", project.registry)
    )
