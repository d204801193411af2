"""The next version: the same text with three fields set, or nothing. A new benchmark: a template to fill in."""

import re
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

from cxrspec.authoring import start_benchmark, start_version
from cxrspec.freeze import validate_definition
from cxrspec.loader import load_definition
from cxrspec.schema import SCHEMA_LINE, definition_schema
from cxrspec.strict_yaml import load_document
from cxrspec.tasks import TASKS
from project import DEFINITION, REF, SPEC, Project, authored_project, refusal


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project that is not frozen."""
    return authored_project(tmp_path)


def start(project: Project, version: str = "v2", change: str | None = None) -> str:
    """Start the next version and return its text."""
    reference = start_version(REF, version, project.registry, change=change)
    return project.registry.spec_path(reference).read_text()


def test_only_three_fields_differ(project: Project) -> None:
    """Comments, order and layout stay; the version, what it supersedes and the change stand together."""
    expected = DEFINITION.replace(
        "definition_version: v1\n", "definition_version: v2\nsupersedes: v1\nchange: Another seed.\n"
    )
    assert f"{SCHEMA_LINE}\n{expected}" == start(project, change="Another seed.")


def test_a_second_start_replaces_the_fields_of_the_first(project: Project) -> None:
    """The third version names the second only."""
    start(project)
    text = (
        start_version(REF.parse("tiny@v2"), "v3", project.registry, change="More.")
        and project.path("specs/tiny/v3.yaml").read_text()
    )
    assert ("supersedes: v2", 1, 1) == (text.splitlines()[4], text.count("supersedes:"), text.count("\nchange:"))


def test_the_new_version_has_the_digest_of_the_old_one(project: Project) -> None:
    """Until it is edited, nothing that can change a score differs."""
    start(project)
    old, new = (load_definition(project.path(f"specs/tiny/{name}.yaml")) for name in ("v1", "v2"))
    assert old.digest == new.digest


@pytest.mark.parametrize(
    "change",
    [
        "change: |\n  Eins.\n\n  Zwei.\n",
        "change: >-\n  Eins\n  zwei.\n\n",
        "change: eins\n  und zwei\n",
        'change: "yes"\n',
        "supersedes: v0\nchange: Eins.\n# a comment\n",
    ],
)
def test_a_change_of_several_lines_is_replaced_whole(project: Project, change: str) -> None:
    """Folded, literal, plain and quoted text of the old version leaves nothing behind."""
    project.edit(SPEC, "task: findings\n", f"{change}task: findings\n")
    text = start(project, change="New.")
    assert (1, "v1") == (text.count("change:"), load_definition(project.path("specs/tiny/v2.yaml")).supersedes)
    assert [] == [word for word in ("Eins", "eins", "Zwei", "zwei", '"yes"', "v0") if word in text]


@pytest.mark.parametrize("change", ["no", "a: b", "# not a comment", 'it\'s "quoted"', "two\nlines", "ü", "1e-4"])
def test_any_words_of_a_change_are_text(project: Project, change: str) -> None:
    """The sentence is quoted where YAML would read it otherwise."""
    start(project, change=change)
    assert change == load_definition(project.path("specs/tiny/v2.yaml")).change


def test_words_that_cannot_be_read_back_leave_no_file(project: Project) -> None:
    """A line end that only some readers see is refused, and the new version is not there."""
    assert ["yaml-syntax"] == [code for code, _ in refusal(lambda: start(project, change="a\u2028b"))]
    assert [SPEC] == list(project.files("specs"))


def test_a_byte_order_mark_and_carriage_returns_are_nothing(project: Project) -> None:
    """T4, T7: a definition written on Windows starts its next version like any other."""
    project.write(SPEC, b"\xef\xbb\xbf" + DEFINITION.split("\n", 1)[1].replace("\n", "\r\n").encode())
    assert "\ndefinition_version: v2\nsupersedes: v1\n" in start(project)


@pytest.mark.parametrize("line", ['"definition_version": v1', "definition_version : v1", "? definition_version\n: v1"])
def test_a_layout_that_cannot_be_set_leaves_no_file(project: Project, line: str) -> None:
    """A version that is not written in a line of its own cannot be replaced, and nothing is half done."""
    project.edit(SPEC, "definition_version: v1", line)
    assert {"path-mismatch", "yaml-syntax"} >= {code for code, _ in refusal(lambda: start(project))}
    assert not project.path("specs/tiny/v2.yaml").exists()


@pytest.mark.parametrize("version", ["V2", "v 2", "../v2", "v2:test", "v2/x", "", "v" * 65])
def test_a_version_that_is_no_version_is_refused(project: Project, version: str) -> None:
    """No name leaves the folder, and nothing is written."""
    assert {"field-value"} == {code for code, _ in refusal(lambda: start(project, version))}
    assert [SPEC] == list(project.files("specs"))


def test_a_version_that_exists_is_not_overwritten(project: Project) -> None:
    """The other file keeps its text."""
    project.write("specs/tiny/v2.yaml", "mine")
    [(code, text)] = refusal(lambda: start(project))
    assert ("path-mismatch", "specs/tiny/v2.yaml: exists already. Choose another version") == (code, text)
    assert "mine" == project.path("specs/tiny/v2.yaml").read_text()


def test_a_faulty_old_version_is_named(project: Project) -> None:
    """Faults are not carried into the next version."""
    project.edit(SPEC, "seed: 7", "seed: -7")
    assert ["field-value"] == [code for code, _ in refusal(lambda: start(project))]


def test_no_source_is_opened(project: Project) -> None:
    """A version is started on a machine without any data."""
    project.path("data/labels.csv").unlink()
    assert "supersedes: v1" in start(project)


def test_edits_of_a_frozen_file_go_along(project: Project) -> None:
    """Who edits a frozen definition finds the edits in the next version, as the refusal says."""
    project.freeze()
    project.edit(SPEC, "seed: 7", "seed: 8")
    assert "seed: 8" in start(project)


def test_a_version_names_the_schema_once(project: Project) -> None:
    """The line for editors is written where it is missing, and kept where it is."""
    start(project)
    text = project.path("specs/tiny/v2.yaml").read_text()
    again = start_version(REF.parse("tiny@v2"), "v3", project.registry)
    assert [1, 1] == [one.count(SCHEMA_LINE) for one in (text, project.registry.spec_path(again).read_text())]


# -- a new benchmark


FILLED = {
    "title": "Two findings",
    "seed": "7",
    "licence": "CC0",
    "attribution": "nobody",
    "column": "image",
    "edema": "Edema",
    "pleural_effusion": "Effusion",
    "mass": "Mass",
    "nodule": "Nodule",
    "boxes/list": "image",
    **{name: name for name in ("finding", "left", "top", "width", "height")},
}


def filled(text: str) -> str:
    """Return a template with every empty field filled in."""
    text = re.sub(r"^( *)([\w/]+):( +#.*)$", _value, text, flags=re.MULTILINE)
    return re.sub(r"^  -$", "  - Something.", text, flags=re.MULTILINE)


def _value(line: re.Match[str]) -> str:
    return f"{line[1]}{line[2]}: {FILLED[line[2]]}{line[3]}" if line[2] in FILLED else line[0]


def begin(project: Project, task: str) -> Path:
    """Start the benchmark `new` and return its file."""
    return project.registry.spec_path(start_benchmark("new", "v1", task, project.registry))


@pytest.mark.parametrize("task", sorted(TASKS))
def test_a_template_names_what_only_its_author_knows(project: Project, task: str) -> None:
    """Every issue is of a field that is empty; nothing can be frozen with a placeholder in it."""
    issues, _, _ = validate_definition(begin(project, task), project.registry)
    texts = [str(issue) for issue in issues]
    assert ("title", True) == (texts[0].split()[1].rstrip(":"), "seed: an empty value" in texts[1])
    assert [] == [text for text in texts if "an empty value is not" not in text and "give either column" not in text]


@pytest.mark.parametrize("task", sorted(TASKS))
def test_a_template_that_is_filled_in_is_fine(project: Project, task: str) -> None:
    """Once the empty fields have values, validate and the schema of editors accept it."""
    path = begin(project, task)
    path.write_text(filled(path.read_text()))
    assert ([], []) == validate_definition(path, project.registry)[:2]
    assert Draft7Validator(definition_schema()).is_valid(load_document(path, shown_as="x")[0])


@pytest.mark.parametrize(
    ("benchmark", "version", "task", "fields"),
    [
        ("New", "V1", "findings", ["benchmark", "definition_version"]),
        ("n" * 65, "v1", "findings", ["benchmark"]),
        ("a@v1", "../v1", "findings", ["benchmark", "definition_version"]),
        ("new", "v1", "finding", ["task"]),
        ("tiny", "v1", "findings", ["specs/tiny/v1.yaml"]),
    ],
)
def test_a_start_that_is_refused_writes_nothing(
    project: Project, benchmark: str, version: str, task: str, fields: list[str]
) -> None:
    """Each part that is wrong is named, and no file is made or replaced."""
    before = project.files("specs")
    found = refusal(lambda: start_benchmark(benchmark, version, task, project.registry))
    assert fields == [text.partition(": ")[0] for _, text in found]
    assert before == project.files("specs")
