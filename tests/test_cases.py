"""Cases chosen per condition from a made-up label table, questions about them, and a question set made of both."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cxrspec.asking import questions_to_answer
from cxrspec.audit import audit_definition, audit_system
from cxrspec.errors import CxrspecError
from cxrspec.freeze import freeze
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.selection import per_condition_choice
from cxrspec.sources import Store
from cxrspec.tasks.vqa.assignment import Question, assign_questions
from project import Project
from questions import KINDS, METRICS, SMALL, Questions, tsv

CASES = Reference("mimic-cxr-vqa-like", "cases-v1")
ASKED = Reference("mimic-cxr-vqa-like", "questions-v1")
LABELS = (  # the fourteen columns of a label table of CheXpert's kind
    *("Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Enlarged Cardiomediastinum", "Fracture", "Lung Lesion"),
    *(
        "Lung Opacity",
        "No Finding",
        "Pleural Effusion",
        "Pleural Other",
        "Pneumonia",
        "Pneumothorax",
        "Support Devices",
    ),
)
DEFINITION = """\
benchmark: mimic-cxr-vqa-like
definition_version: cases-v1
title: Made-up studies, chosen per condition
task: cases
seed: 11
sources:
  made: {kind: file, files: {labels: chexpert.csv, split: split.csv}, licence: CC0, attribution: nobody}
items:
  unit: study
  source: made/labels
  item_id: {column: study_id, form: text}
  group_id: {column: subject_id}
  joins: {made/split: study_id}
splits:
  test: {where: {column: {source: made/split, column: split}, one_of: test}}
  validate: {where: {column: {source: made/split, column: split}, one_of: validate}}
labeler: chexpert
conditions:
  pneumothorax: Pneumothorax
  pleural_effusion: Pleural Effusion
  edema: Edema
  consolidation_or_pneumonia: [Consolidation, Pneumonia]
  lung_lesion: Lung Lesion
  no_finding: No Finding
  cardiomegaly: Cardiomegaly
subsets:
  test:
    pool: {split: test}
    select:
      per_condition: {Pneumothorax: 3, Pleural Effusion: 3, Edema: 3, Consolidation OR Pneumonia: 3, Lung Lesion: 3,
                      No Finding: 3}
  validation:
    pool: {split: validate}
    disjoint_from: test
    disjoint_by: group_id
    select: {per_condition: {pleural_effusion: 2, lung_lesion: 1}}
"""
TEMPLATES = [
    ("condition", "question_type", "question"),
    *((name, kind, f"{kind} of {name}?") for name in ("Edema", "Pleural Effusion", "Pneumothorax", "Lung Lesion")
      for kind in ("presence", "location", "severity")),
    ("Consolidation OR Pneumonia", "presence", "presence of consolidation?"),
    ("Consolidation OR Pneumonia", "presence", "any sign of pneumonia?"),
    ("cardiomegaly", "presence", "presence of cardiomegaly?"),
    ("cardiomegaly", "severity", "severity of cardiomegaly?"),
    ("No Finding", "presence", "is it a normal film?"),
    ("", "presence", "is anything abnormal?"),
    ("", "presence", "is there any device?"),
]  # fmt: skip


def label_rows() -> list[tuple[str, ...]]:
    """Return 240 studies of 120 subjects, each label 1.0, 0.0, -1.0 or blank by a rule that repeats nowhere soon."""
    rows = []
    for study in range(240):
        digests = [hashlib.sha256(f"{study}:{label}".encode()).digest()[0] for label in LABELS]
        cells = [("1.0", "0.0", "-1.0", "", "", "0.0")[digest % 6] for digest in digests]
        is_normal = study % 7 == 0
        cells = ["" if is_normal or label == "No Finding" else cell for label, cell in zip(LABELS, cells, strict=True)]
        if is_normal:
            cells[LABELS.index("No Finding")] = "1.0"
        rows.append((f"1{study // 2:04d}", f"5{study:04d}", *cells))
    return rows


def csv(rows: list[tuple[str, ...]]) -> str:
    """Return rows as CSV."""
    return "\n".join(",".join(row) for row in rows) + "\n"


HEADER = ("subject_id", "study_id", *LABELS)


class Made:
    """A project with a label table, a split table and the definition of the cases."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write(CASES, DEFINITION)
        self.put("chexpert.csv", csv([HEADER, *label_rows()]))
        splits = [("dicom_id", "study_id", "subject_id", "split")]
        for subject, study, *_ in label_rows():
            split = "test" if int(subject) < 10_080 else "validate"
            splits += [(f"{study}-{image}", study, subject, split) for image in "ab"]  # two images a study
        self.put("split.csv", csv(splits))
        self.put("templates.csv", csv(TEMPLATES))

    @property
    def registry(self) -> Registry:
        """The registry as a new process sees it."""
        return Registry(self.root)

    @property
    def store(self) -> Store:
        """A store without a network."""
        return Store(self.root / "cache", root=self.root, offline=True)

    def put(self, name: str, text: str) -> None:
        """Write a file."""
        (self.root / name).write_text(text, encoding="utf-8", newline="")

    def write(self, reference: Reference, text: str) -> None:
        """Write a definition."""
        path = self.registry.spec_path(reference)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def freeze(self, *changes: tuple[str, str]) -> Any:
        """Freeze the cases, after some texts of the definition were replaced; return the lock."""
        text = DEFINITION
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        self.write(CASES, text)
        return freeze(CASES, self.registry, self.store).lock

    def table(self, subset: str) -> Any:
        """Return a frozen subset of cases."""
        return self.registry.read_subset(Reference(CASES.benchmark, CASES.version, subset=subset))

    def questions(self, templates: str | None = None) -> list[tuple[str, ...]]:
        """Return the rows of the questions to answer, header first."""
        data = (templates or (self.root / "templates.csv").read_text()).encode()
        text = questions_to_answer(CASES, ("templates.csv", data), self.registry).decode()
        return [tuple(line.split("\t")) for line in text.splitlines()]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """A project that is not frozen yet."""
    return Made(tmp_path)


def refusal(run: Callable[[], object]) -> str:
    """Return the text of a refusal."""
    with pytest.raises(CxrspecError) as refused:
        run()
    return str(refused.value)


# the choice


def expected_choice(seed: int, split: str) -> dict[str, list[str]]:
    """Choose the test cases again, from the label table alone and in plain Python."""
    of_split = [row for row in label_rows() if (int(row[0]) < 10_080) == (split == "test")]
    rows = {row[1]: dict(zip(LABELS, row[2:], strict=True)) for row in of_split}
    ranked = sorted(rows, key=lambda study: hashlib.sha256(f"{seed}:{study}".encode()).digest())
    alone = ("Edema", "Lung Lesion", "No Finding", "Pleural Effusion", "Pneumothorax")
    columns = {name.lower().replace(" ", "_"): [name] for name in alone}
    columns["consolidation_or_pneumonia"] = ["Consolidation", "Pneumonia"]
    chosen: dict[str, list[str]] = {}
    for condition, labels in sorted(columns.items()):
        taken = {study for studies in chosen.values() for study in studies}
        fits = [s for s in ranked if s not in taken and any(rows[s][label] == "1.0" for label in labels)]
        chosen[condition] = fits[:3]
    return chosen


def test_cases_are_chosen_per_condition_by_the_rank_of_their_seed_hash(made: Made) -> None:
    """Three per condition by SHA-256 of `<seed>:<study>`, a case counted once, by a direct computation."""
    made.freeze()
    wanted = expected_choice(11, "test")
    assert sorted(study for studies in wanted.values() for study in studies) == made.table("test").item_ids
    assert 18 == len(made.table("test"))


def test_row_order_and_key_order_change_no_choice(made: Made) -> None:
    """H1: the label table upside down and the conditions in another order freeze to the same subset ids."""
    first = made.freeze().subset_ids
    (made.root / "other").mkdir()
    other = Made(made.root / "other")
    other.put("chexpert.csv", csv([HEADER, *label_rows()[::-1]]))
    changed = ("Pneumothorax: 3, Pleural Effusion: 3, Edema: 3", "Edema: 3, Pneumothorax: 3, pleural-effusion: 3")
    assert first == other.freeze(changed).subset_ids


def test_c4_v11_the_four_values_are_kept_apart(made: Made) -> None:
    """C4, V11: -1 and blank are neither positive nor negative; of two labels one that is positive is enough."""
    lock = made.freeze()
    counts = lock.subsets["test"]["pool"]
    column = [dict(zip(LABELS, row[2:], strict=True)) for row in label_rows() if int(row[0]) < 10_080]
    assert Counter(row["Edema"] for row in column) == {
        "1.0": counts["positives"]["edema"],
        "0.0": counts["negatives"]["edema"],
        "-1.0": counts["uncertain"]["edema"],
        "": counts["blank"]["edema"],
    }
    both = sum("1.0" in (row["Consolidation"], row["Pneumonia"]) for row in column)
    assert both == counts["positives"]["consolidation_or_pneumonia"]


def test_v11_the_labeler_is_part_of_the_definition(made: Made) -> None:
    """V11: the same table by NegBio would be another definition."""
    first = made.freeze().definition_digest
    text = DEFINITION.replace("labeler: chexpert", "labeler: negbio")
    made.write(CASES, text)
    assert "labeler" in refusal(lambda: freeze(CASES, made.registry, made.store))
    assert first == made.registry.read_lock(CASES).definition_digest


@pytest.mark.parametrize("column", ["study_id", "subject_id"])
def test_v11_a_label_table_needs_subject_and_study(made: Made, column: str) -> None:
    """V11: refused with the columns that it has and where the definition names the missing one."""
    made.put("chexpert.csv", csv([tuple(name.replace(column, "id") for name in HEADER), *label_rows()]))
    message = refusal(made.freeze)
    assert f"no column '{column}'" in message
    assert {"study_id": "items.item_id.column", "subject_id": "items.group_id.column"}[column] in message


def test_a_cell_that_is_no_label_is_refused(made: Made) -> None:
    """2.0 is none of the four values; the message names the studies."""
    rows = label_rows()
    rows[5] = (*rows[5][:5], "2.0", *rows[5][6:])
    made.put("chexpert.csv", csv([HEADER, *rows]))
    assert "'2.0' in 1 cells, of 50005: allowed is 1, 0, -1 or blank" in refusal(made.freeze)


def test_too_few_positive_cases_are_refused_by_condition(made: Made) -> None:
    """How many there are of how many that were asked for."""
    message = refusal(lambda: made.freeze(("Edema: 3", "Edema: 300")))
    assert "too few positive items that no other condition has chosen: edema" in message
    assert "of 300" in message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Edema: 3", "Oedema: 3", "unknown condition 'Oedema'"),
        ("Edema: 3", "Edema: 3, edema: 2", "'edema' and 'Edema' are one condition"),
        ("Edema: 3", "Edema: 0", "numbers from 1"),
        ("  no_finding: No Finding", "  group_id: No Finding", "'group_id' is a column of every table"),
    ],
)
def test_a_faulty_selection_is_refused_before_data_is_opened(made: Made, old: str, new: str, message: str) -> None:
    """Conditions are those that the definition declares, each once."""
    assert message in refusal(lambda: made.freeze((old, new)))


def test_choosing_among_the_chosen_is_the_same_choice() -> None:
    """What a case was chosen for follows from the frozen table alone."""
    labels = np.array([[(row * step) % 5 < 2 for step in (1, 2, 3)] for row in range(1, 40)])
    wanted, names = {"a": 3, "b": 4, "c": 2}, ("a", "b", "c")
    chosen_for = per_condition_choice(labels, wanted, names=names)
    among = chosen_for >= 0
    assert {0: 3, 1: 4, 2: 2} == Counter(chosen_for[among].tolist())
    assert chosen_for[among].tolist() == per_condition_choice(labels[among], wanted, names=names).tolist()


def test_other_tasks_select_per_condition_too(compile_tiny: Any, tiny_document: Any) -> None:
    """Findings are conditions: two images with edema, one with a mass among those that are left."""
    tiny_document["subsets"]["train"]["select"] = {"per_condition": {"Edema": 2, "mass": 1}}
    assert 3 == compile_tiny(tiny_document | {"expect": {}}).subsets["train"].counts["items"]


def test_nothing_can_be_submitted_to_cases(made: Made) -> None:
    """They are there to be asked about."""
    from cxrspec.submit import Request, submit

    made.freeze()
    request = Request(CASES, "ours", "answers", b"x", "x.csv")
    assert "has no protocol: it freezes items and their labels" in refusal(lambda: submit(request, made.registry))


# the questions

EDEMA = [Question("edema", kind, f"{kind}?") for kind in ("presence", "location")]
MASS = [Question("mass", kind, f"mass {kind}?") for kind in ("presence", "size")]
ANY = [Question("", "presence", f"anything {at}?") for at in range(3)]


def texts(labels: dict[str, str], chosen_for: str = "edema", case: str = "s1") -> list[str]:
    """Return the questions of a case."""
    return [one.text for one in assign_questions(case, labels, chosen_for, [*EDEMA, *MASS, *ANY], 7)]


def test_a_case_gets_its_own_conditions_questions_and_those_of_one_more() -> None:
    """One per type of the condition it was chosen for, one per type of a further positive one, one of neither."""
    found = texts({"edema": "1", "mass": "1"})
    assert ["location?", "presence?", "mass presence?", "mass size?"] == [one for one in found if "anything" not in one]
    assert 5 == len(found)


@pytest.mark.parametrize("label", ["0", ""])
def test_without_a_further_positive_condition_a_negative_ones_presence_is_asked(label: str) -> None:
    """Not mentioned counts as negative; only the presence question is asked."""
    found = texts({"edema": "1", "mass": label})
    assert ["location?", "presence?", "mass presence?"] == [one for one in found if "anything" not in one]


def test_an_uncertain_condition_is_neither() -> None:
    """-1 is asked about in no way."""
    assert 3 == len(texts({"edema": "1", "mass": "-1"}))


def test_what_is_random_is_decided_by_the_seed_hash() -> None:
    """The question of no condition is the one whose SHA-256 of `<seed>:<case>:<text>` is smallest; cases differ."""
    wanted = min((one.text for one in ANY), key=lambda text: hashlib.sha256(f"7:s1:{text}".encode()).digest())
    assert [wanted] == [one for one in texts({"edema": "1"}) if "anything" in one]
    asked = {one for case in range(20) for one in texts({"edema": "1"}, case=str(case)) if "anything" in one}
    assert 3 == len(asked)


def test_the_order_of_templates_never_matters() -> None:
    """H1: the same questions from a shuffled table."""
    templates = [*EDEMA, *MASS, *ANY]
    labels = {"edema": "1", "mass": "1"}
    assert assign_questions("s1", labels, "edema", templates, 7) == assign_questions(
        "s1", labels, "edema", templates[::-1], 7
    )


def test_one_text_is_asked_once() -> None:
    """Two conditions may have one question between them; a case without templates has the question of none."""
    shared = [Question("edema", "presence", "same?"), Question("mass", "presence", "same?")]
    assert 1 == len(assign_questions("s1", {"edema": "1", "mass": "1"}, "edema", shared, 7))
    assert 1 == len(assign_questions("s1", {}, "no_finding", ANY, 7))


def test_questions_are_asked_about_the_condition_a_case_was_chosen_for(made: Made) -> None:
    """Every chosen case has its condition's questions; the answers are blank."""
    made.freeze()
    header, *rows = made.questions()
    assert ("study_id", "split", "condition", "question_type", "question", "answer")[:5] == header[:5]
    chosen = expected_choice(11, "test")
    edema = {row[0] for row in rows if row[1:3] == ("test", "edema")}
    assert set(chosen["edema"]) == edema
    for study in edema:
        asked = {row[4] for row in rows if row[0] == study}
        assert {"presence of Edema?", "location of Edema?", "severity of Edema?"} < asked
        assert 1 == len(asked & {"is anything abnormal?", "is there any device?"})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("Oedema,presence,is it?", "unknown condition 'Oedema'; the cases have"),
        ("Edema,presence,", "'' of type 'presence' is no cell of a TSV table"),
        ('Edema,presence,"a\tb"', "Write both, in one line and without tabs"),
    ],
)
def test_a_faulty_template_is_refused(made: Made, line: str, message: str) -> None:
    """With its line, all at once."""
    made.freeze()
    assert message in refusal(lambda: made.questions(f"condition,question_type,question\n{line}\n"))


def test_every_case_is_asked_about_what_it_was_chosen_for(made: Made) -> None:
    """A condition without a template is refused with its cases: 3 for no finding; 3 and 1 for a lung lesion."""
    made.freeze()
    kept = [row for row in TEMPLATES if row[0] not in ("Lung Lesion", "No Finding")]
    message = refusal(lambda: made.questions(csv(kept)))
    assert "no template of condition 'lung_lesion', for which 4 cases were chosen" in message
    assert "no template of condition 'no_finding', for which 3 cases were chosen" in message


def test_questions_are_asked_about_cases_only(made: Made, tmp_path: Path) -> None:
    """A definition of another task, or a subset that is not selected per condition, says nothing to ask about."""
    from project import REF, frozen_project

    project = frozen_project(tmp_path / "findings")
    assert "questions are asked about 'cases'" in refusal(
        lambda: questions_to_answer(REF, ("t", b""), project.registry)
    )
    made.freeze(("select: {per_condition: {pleural_effusion: 2, lung_lesion: 1}}", "select: all"))
    assert "subset validation is not selected per condition" in refusal(made.questions)


# end to end

VQA = """\
benchmark: mimic-cxr-vqa-like
definition_version: questions-v1
supersedes: cases-v1
title: Questions about the chosen studies
task: vqa
seed: 11
sources:
  made: {kind: file, files: {answered: {path: answered.tsv, quotes: plain}}, licence: CC0, attribution: nobody}
items:
  unit: question
  source: made
  item_id: {column: study_id, form: text, numbered_by: question}
  group_id: {column: study_id}
splits:
  test: {where: {column: split, one_of: test}}
  validation: {where: {column: split, one_of: validation}}
columns: {question: question, answer: answer, question_type: question_type, condition: condition}
closed_ended: {by: leading_yes_no}
question_types: {presence: Presence, location: Location, severity: Severity}
conditions:
  pneumothorax: Pneumothorax
  pleural_effusion: Pleural Effusion
  edema: Edema
  consolidation_or_pneumonia: [Consolidation OR Pneumonia]
  lung_lesion: Lung Lesion
  no_finding: No Finding
phrases: {affirmative: [there is], negative: [there is no], refusal: [i cannot]}
subsets:
  test: {pool: {split: test}, select: all}
  validation: {pool: {split: validation}, disjoint_from: test, disjoint_by: group_id, select: all}
protocols: {answers: {}}
metrics:
"""


def answered(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Write the answers, as a radiologist would: yes or no by turns, and a place or a grade."""
    words = {"location": "left base", "severity": "mild"}
    return [(*row[:5], words.get(row[3], ("Yes.", "No.")[at % 2])) for at, row in enumerate(rows)]


def test_a_question_set_is_built_frozen_scored_and_audited(made: Made) -> None:
    """`mimic-cxr-vqa-like`, from label table and templates to an audited number."""
    project = Project(made.root)
    assert 0 == project.run("freeze", str(CASES)).code
    asked = ("questions", str(CASES), "--templates", "templates.csv", "--to", "asked.tsv")
    ran = project.run(*asked)
    assert f"wrote {project.run(*asked, '--json').json['n_questions']} questions" in ran.out
    assert "their answers are for a radiologist to write" in ran.out
    header, *rows = [tuple(line.split("\t")) for line in (made.root / "asked.tsv").read_text().splitlines()]
    made.put("answered.tsv", tsv(answered(rows), header))
    made.write(ASKED, VQA + METRICS)
    assert 0 == project.run("freeze", str(ASKED)).code
    lock = made.registry.read_lock(ASKED)
    counts = lock.subsets["test"]
    assert (18, 6, {3}) == (counts["groups"], len(counts["cases"]), set(counts["cases"].values()))
    for kind in ("always-yes", "always-no", "majority"):
        assert 0 == project.run("baseline", "answers", str(ASKED), "--kind", kind).code
    assert 0 == project.run("score", str(ASKED)).code
    assert all(audit_definition(one, made.registry, made.store).is_sound() for one in (CASES, ASKED))
    assert audit_system(ASKED, "majority", made.registry).is_sound()
    for word in (*list(KINDS)[:6], "always-yes", "majority"):
        assert word in project.run("leaderboard", str(ASKED)).out


def test_an_unanswered_question_cannot_be_frozen(made: Made) -> None:
    """The sheet as it was written has blank answers."""
    made.freeze()
    header, *rows = made.questions()
    made.put("answered.tsv", tsv([(*row[:5], "") for row in rows], (*header[:5], "answer")))
    made.write(ASKED, VQA + METRICS)
    assert "the answer is empty" in refusal(lambda: freeze(ASKED, made.registry, made.store))


# floors


def floor(root: Path, kind: str) -> dict[str, Any]:
    """Return the scores of a baseline on the small questions."""
    from cxrspec.baselines import answers_request
    from cxrspec.submit import submit

    (root / "specs").mkdir(exist_ok=True)
    project = Questions(root)
    project.freeze()
    submit(answers_request(SMALL, kind, project.registry), project.registry)
    return {one["metric"]: one for one in project.score(kind)["scores"]}


@pytest.mark.parametrize(("kind", "yes_rate"), [("always-yes", 1.0), ("always-no", 0.0)])
def test_one_answer_to_everything_is_the_floor(tmp_path: Path, kind: str, yes_rate: float) -> None:
    """Half of the closed-ended questions are right, and balanced accuracy gives it away."""
    found = floor(tmp_path, kind)
    assert (0.5, 0.5, yes_rate) == tuple(
        found[f"closed_{name}"]["value"] for name in ("accuracy", "balanced_accuracy", "yes_rate")
    )


def test_the_majority_is_that_of_another_subset(tmp_path: Path) -> None:
    """In validation presence is answered yes and size large; nothing is known of location."""
    found = floor(tmp_path, "majority")
    assert (1.0, 0.0) == (found["closed_yes_rate"]["value"], found["open_exact_match"]["value"])
    assert 1 == found["open_token_f1"]["n_empty"]


def test_unknown_floors_and_subsets_are_refused(tmp_path: Path) -> None:
    """Each with what there is."""
    from cxrspec.baselines import answers_request

    (tmp_path / "specs").mkdir()
    project = Questions(tmp_path)
    project.freeze()
    assert "there are always-yes, always-no, majority" in refusal(lambda: answers_request(SMALL, "x", project.registry))
    assert "it has test, validation" in refusal(
        lambda: answers_request(SMALL, "majority", project.registry, fit_on="train")
    )
