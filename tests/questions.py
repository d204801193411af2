"""Made-up questions about made-up cases: a table of the shape of the published one, and a small project on a few.

No question, answer or id of a real file stands here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cxrspec.freeze import Frozen, freeze
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.report_file import read_report
from cxrspec.score import score
from cxrspec.sources import Store
from cxrspec.submit import Request, submit

REAL = Reference("mimic-cxr-vqa", "physionet-1.0.0-v1")
SPECS = Path(__file__).parent.parent / "specs"
HEADER = ("study_id", "dicom_id", "split", "condition", "question_type", "question", "answer")
CONDITIONS = (
    *("Pneumothorax", "Pleural Effusion", "Edema"),
    *("Consolidation OR Pneumonia", "Lung Lesion", "No Finding"),
)
OPEN = (("Location", "Where is it?", "left base"), ("Size", "How large is it?", "small"))


def case_rows(case: int, split: str, condition: str, *, n_questions: int, n_closed: int) -> list[tuple[str, ...]]:
    """Return the rows of one made-up case, closed-ended questions first."""
    start = (f"{50_000_000 + case}", f"image-{case}", split, condition)
    closed = [
        (*start, "Presence", f"Is thing {at} there?", ("Yes.", "No, it is not.")[(case + at) % 2])
        for at in range(n_closed)
    ]
    return [*closed, *((*start, *OPEN[at]) for at in range(n_questions - n_closed))]


def published_rows(n_test: int = 226) -> list[tuple[str, ...]]:
    """Return 48 test cases with `n_test` questions, 154 closed-ended, and 23 for validation with 111 and 73."""
    rows = []
    for case in range(48):
        n_questions = 5 if case < n_test - 48 * 4 else 4
        n_closed = 3 + (case < 10)
        rows += case_rows(case, "test", CONDITIONS[case % 6], n_questions=n_questions, n_closed=n_closed)
    for case in range(23):
        n_questions, n_closed = 4 + (case < 19), 3 + (case < 4)
        condition = CONDITIONS[case % 4 + 1]
        rows += case_rows(100 + case, "validation", condition, n_questions=n_questions, n_closed=n_closed)
    return rows


def tsv(rows: Sequence[Sequence[str]], header: Sequence[str] = HEADER) -> str:
    """Return a table as TSV, every cell as it stands."""
    return "\n".join("\t".join(row) for row in [header, *rows]) + "\n"


SMALL = Reference("small-vqa", "v1")
METRIC = """\
  - name: {name}
    kind: {kind}
    protocol: answers
    {reading}
    interval: {{method: bootstrap, unit: group, resamples: 200, level: 0.9, max_left_out: 1.0}}
"""
KINDS = {
    "closed_accuracy": ("accuracy", "strict"),
    "closed_accuracy_lenient": ("accuracy", "lenient"),
    "closed_balanced_accuracy": ("balanced_accuracy", "strict"),
    "closed_yes_rate": ("yes_rate", "strict"),
    "open_exact_match": ("exact_match", None),
    "open_token_f1": ("token_f1", None),
    "open_mean_grade": ("mean_grade", None),
    "overall_grade": ("overall_grade", "strict"),
}
METRICS = "".join(
    METRIC.format(name=name, kind=kind, reading=f"reading: {reading}" if reading else "")
    for name, (kind, reading) in KINDS.items()
)
DEFINITION = (
    """\
benchmark: small-vqa
definition_version: v1
title: Nine questions about four cases
task: vqa
seed: 5
sources:
  made: {kind: file, files: {questions: {path: data/questions.tsv, quotes: plain}}, licence: CC0, attribution: nobody}
items:
  unit: question
  source: made
  item_id: {column: study_id, form: text, numbered_by: question}
  group_id: {column: study_id}
splits:
  test: {where: {column: split, one_of: test}}
  validation: {where: {column: split, one_of: validation}}
columns: {question: question, answer: answer, question_type: question_type, condition: condition, image: dicom_id}
closed_ended: {by: leading_yes_no}
question_types: {presence: Presence, location: Location, size: Size}
conditions: {edema: Edema, pneumothorax: Pneumothorax}
phrases:
  affirmative: [there is, present]
  negative: [there is no, no evidence of, not present, not seen, absent]
  refusal: [i cannot, i am unable]
subsets:
  test: {pool: {split: test}, select: all}
  validation: {pool: {split: validation}, select: all}
protocols: {answers: {}}
metrics:
"""
    + METRICS
)
ROWS = [
    ("s1", "a", "test", "Edema", "Presence", "Is there edema?", "Yes."),
    ("s1", "a", "test", "Edema", "Location", "Where is the edema?", "the left base"),
    ("s1", "a", "test", "Edema", "Presence", "Any line?", "No"),
    ("s2", "b", "test", "Edema", "Presence", "Is there edema?", "No."),
    ("s2", "b", "test", "Edema", "Size", "How large is the heart?", "normal"),
    ("s3", "c", "test", "Pneumothorax", "Presence", "Is there a pneumothorax?", "Yes, on the right."),
    ("s3", "c", "test", "Pneumothorax", "Size", "How large is it?", "small"),
    ("s4", "d", "validation", "Edema", "Presence", "Is there edema?", "Yes"),
    ("s4", "d", "validation", "Edema", "Size", "How large is it?", "large"),
]
ANSWERS = {
    "s1-q01": "No line.",  # Any line?
    "s1-q02": "There is edema",  # Is there edema?
    "s1-q03": "left base",  # Where is the edema?
    "s2-q01": "Normal size",  # How large is the heart?
    "s2-q02": "I cannot tell",  # Is there edema?
    "s3-q01": "small",  # How large is it?
    "s3-q02": "yes",  # Is there a pneumothorax?
}


def answers_csv(answers: dict[str, str] | None = None) -> bytes:
    """Return answers as TSV by item id."""
    return tsv(list((answers or ANSWERS).items()), ("item_id", "answer")).encode()


@dataclass(frozen=True)
class Questions:
    """A project with one file of questions, `data/questions.tsv`."""

    root: Path
    reference: Reference = SMALL

    @property
    def registry(self) -> Registry:
        """The registry as a new process sees it."""
        return Registry(self.root)

    def freeze(self, rows: Sequence[Sequence[str]] | str = ROWS, *changes: tuple[str, str]) -> Frozen:
        """Write definition and questions, and freeze; `changes` are texts of the definition and their replacements."""
        text = DEFINITION
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        self.define(text)
        return self.frozen(rows if isinstance(rows, str) else tsv(rows))

    def define(self, text: str) -> None:
        """Write the definition."""
        path = self.registry.spec_path(self.reference)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def frozen(self, questions: str) -> Frozen:
        """Write the questions and freeze."""
        (self.root / "data").mkdir(exist_ok=True)
        name = "mimic_cxr_vqa.tsv" if self.reference == REAL else "questions.tsv"
        (self.root / "data" / name).write_text(questions, encoding="utf-8", newline="")
        return freeze(self.reference, self.registry, Store(self.root / "cache", root=self.root, offline=True))

    def submit(self, data: bytes = b"", system: str = "ours", name: str = "a.tsv", **more: Any) -> list[str]:
        """Submit answers and return the reader's notes."""
        request = Request(self.reference, system, "answers", data or answers_csv(), name, **more)
        return [str(note) for note in submit(request, self.registry)[1]]

    def score(self, system: str = "ours") -> dict[str, Any]:
        """Score a system and return its report."""
        score(self.reference, system, self.registry)
        report = read_report(self.registry, self.reference, system)
        assert report is not None
        return report

    def scores(self, data: bytes = b"", system: str = "ours") -> dict[str, Any]:
        """Submit answers and return the scores by metric."""
        self.submit(data, system)
        return {one["metric"]: one for one in self.score(system)["scores"]}


Refusal = Callable[[Callable[[], object]], str]
