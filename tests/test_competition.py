"""The CheXpert competition on made-up files of the published layout: freeze, submit, score and audit as shipped."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import precision_score, recall_score, roc_curve

from competition import (
    COMPARISON,
    OBSERVATIONS,
    REFERENCE,
    STUDIES,
    SWAPPED,
    TASKS,
    TEST,
    VALID,
    Competition,
    competition,
    label_files,
    labels,
    predictions,
    predictions_csv,
    reads,
    sheet,
    valid_file,
)
from cxrspec.audit import audit_definition, audit_system
from cxrspec.errors import DefinitionError, SubmissionError
from cxrspec.loader import load_definition
from cxrspec.score import score
from cxrspec.tasks.findings import FindingsTask
from project import Project, frozen_project
from tiny import TINY, csv_text

OURS = ("atelectasis", "cardiomegaly", "consolidation", "edema", "pleural_effusion")
CONVENTIONS = [
    (curve, line, ties)
    for ties in ("strict", "inclusive")
    for curve in ("roc", "precision_recall", "both")
    for line in ("step", "interpolated")
]


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Competition:
    """The test definition frozen, with one system scored; not to be changed."""
    made = competition(tmp_path_factory.mktemp("competition"))
    made.freeze()
    made.submit()
    made.score()
    return made


@pytest.fixture(scope="module")
def report(scored: Competition) -> dict[str, Any]:
    """The report of that system."""
    return scored.score()


def metrics(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the scores of a report by name."""
    return {score["metric"]: score for score in report["scores"]}


def shuffled(text: str, *, rows: bool = True, columns: bool = True) -> str:
    """Turn rows and columns of a file around; the id column comes last."""
    header, *found = csv.reader(io.StringIO(text))
    at = list(range(len(header)))[:: -1 if columns else 1]
    found = found[::-1] if rows else found
    return csv_text([header[i] for i in at], ([row[i] for i in at] for row in found))


def with_cell(text: str, column: str, cell: str) -> str:
    """Write another cell into the first row of a file."""
    header, first, *others = csv.reader(io.StringIO(text))
    first[header.index(column)] = cell
    return csv_text(header, [first, *others])


def refused(run: Callable[[], object], kind: type[DefinitionError] | type[SubmissionError]) -> str:
    """Return the text of what a call is refused with."""
    with pytest.raises(kind) as caught:
        run()
    return str(caught.value)


class TestFreezing:
    def test_the_shipped_definition_freezes_from_a_mirror(self, scored: Competition) -> None:
        """500 studies of 500 patients, the published positives, every expected count met."""
        counts = scored.registry.read_lock(TEST).subsets["test"]
        assert (500, 500) == (counts["items"], counts["groups"])
        assert [153, 151, 29, 78, 104] == [counts["positives"][name] for name in OURS]

    def test_labels_stand_first_then_the_readers(self, scored: Competition) -> None:
        """Reference columns follow the definition: labels, comparison readers, reference readers."""
        digest = scored.registry.read_lock(TEST).subsets["test"]["digest"]
        table = scored.registry.read_table(TEST, "test", digest)
        of_readers = [f"{reader}.{finding}" for reader in (*COMPARISON, *REFERENCE) for finding in OURS]
        assert ["item_id", "group_id", *OURS, *of_readers] == list(table.header)
        assert "test/patient64741/study1" == min(table.item_ids)

    @pytest.mark.parametrize("name", ["groundtruth", *COMPARISON, *REFERENCE])
    def test_c8_the_order_of_rows_and_columns_changes_nothing(
        self, tmp_path: Path, scored: Competition, name: str
    ) -> None:
        """C8: the files are joined by study and column name, whatever order each of them has."""
        other = competition(tmp_path, {name: shuffled(label_files()[name])})
        assert scored.registry.read_lock(TEST).subset_ids == other.freeze().lock.subset_ids

    def test_c8_a_swap_by_position_would_be_found(self, tmp_path: Path) -> None:
        """C8: cells under the wrong one of the two swapped names are not the majority any more."""
        text = label_files()["bc1"].replace(",".join(SWAPPED), ",".join(OBSERVATIONS))
        assert "'Lung Opacity'" in refused(competition(tmp_path, {"bc1": text}).freeze, DefinitionError)

    def test_labels_that_are_not_the_majority_are_counted(self, tmp_path: Path) -> None:
        """All 14 x 500 cells are checked, also of observations that no task scores."""
        wrong = labels()
        for name, rows in (("Edema", [0, 1]), ("Fracture", [2])):
            wrong[rows, OBSERVATIONS.index(name)] ^= 1
        text = refused(competition(tmp_path, {"groundtruth": sheet(wrong)}).freeze, DefinitionError)
        assert "3 of 7,000 cells are not the majority of bc1, bc2, bc3, bc5, bc7 ('Edema' 2, 'Fracture' 1)" in text
        assert "'test/patient64741/study1', 'test/patient64742/study1', 'test/patient64743/study1'" in text

    @pytest.mark.parametrize("reader", ["bc4", "bc1"])
    @pytest.mark.parametrize("cell", ["", "-1"])
    def test_every_reader_says_yes_or_no_of_every_study(self, tmp_path: Path, reader: str, cell: str) -> None:
        """A blank or uncertain read of a scored study is refused, by reader."""
        files = {reader: with_cell(sheet(reads()[reader]), "Pleural Effusion", cell)}
        said = refused(competition(tmp_path, files).freeze, DefinitionError)
        wanted = (
            "1 of 7,000 cells are not the majority" if reader == "bc1" else "reader bc4: 1 of 2,500 reads are blank"
        )
        assert wanted in said

    def test_rows_of_a_reader_that_change_nothing_are_noted(self, tmp_path: Path, scored: Competition) -> None:
        """A study that is no item, and a row that stands there twice: left aside, counted, and the same subset."""
        text = label_files()["bc4"]
        first = text.splitlines()[1]
        other = first.replace("patient64741", "patient70000")
        frozen = competition(tmp_path, {"bc4": f"{text}{first}\n{other}\n"}).freeze()
        said = [str(note) for note in frozen.notes]
        assert [
            "comparison-readers/bc4: 1 of its ids are no items and left aside: test/patient70000/study1",
            "comparison-readers/bc4: 1 rows repeat another row of their item, with the same cells",
        ] == said
        assert scored.registry.read_lock(TEST).subset_ids == frozen.lock.subset_ids

    def test_a_reader_without_a_study_is_refused(self, tmp_path: Path) -> None:
        """A study that a comparison reader did not read has five blank reads."""
        files = {"bc6": "\n".join(label_files()["bc6"].splitlines()[:-1]) + "\n"}
        assert "reader bc6: 5 of 2,500 reads are blank" in refused(competition(tmp_path, files).freeze, DefinitionError)

    def test_c4_an_open_label_of_the_reference_standard_is_refused(self, tmp_path: Path) -> None:
        """C4: -1 in what is scored is no number and no negative; it is counted by finding."""
        made = competition(tmp_path, **{"  majority_of: reference\n": ""})
        made.pin({"groundtruth": with_cell(sheet(labels()), "Edema", "-1")})
        said = refused(made.freeze, DefinitionError)
        assert "subset test, finding edema: 1 labels are uncertain (-1) and 0 blank" in said


class TestScoring:
    @pytest.mark.parametrize(("curve", "line", "ties"), CONVENTIONS)
    def test_every_convention_stands_in_one_report(
        self, report: dict[str, Any], curve: str, line: str, ties: str
    ) -> None:
        """Total and mean follow from the counts, which follow from the margins of the three comparison readers."""
        wanted = {"curve": curve, "line": line, "ties": ties}
        (found,) = [one for one in report["scores"] if one.get("convention") == wanted]
        entries = found["findings"]
        margins = [[reader["margin"] for reader in entry["readers"].values()] for entry in entries.values()]
        counts = [sum(m > 1e-12 if ties == "strict" else m >= -1e-12 for m in row) for row in margins]
        assert counts == [entry["value"] for entry in entries.values()]
        assert (sum(counts), pytest.approx(sum(counts) / 5)) == (found["total"], found["value"])
        assert list(COMPARISON) == list(entries["edema"]["readers"])

    def test_step_margins_are_those_of_scikit_learn(self, report: dict[str, Any]) -> None:
        """The best true-positive rate at or left of the reader's false-positive rate, minus the reader's."""
        found = metrics(report)["readers_below_roc_step"]["findings"]
        for at, (task, ours) in enumerate(zip(TASKS, OURS, strict=True)):
            truth, calls = (values[:, OBSERVATIONS.index(task)] for values in (labels(), reads()["bc6"]))
            fpr, tpr, _ = roc_curve(truth, predictions()[:, at], drop_intermediate=False)
            reached = tpr[fpr <= 1 - recall_score(truth, calls, pos_label=0) + 1e-12].max()
            assert reached - recall_score(truth, calls) == pytest.approx(found[ours]["readers"]["bc6"]["margin"])

    def test_points_of_readers_and_of_their_vote(self, report: dict[str, Any]) -> None:
        """Sensitivity, specificity and precision against the reference standard; the vote is shown and not counted."""
        entry = metrics(report)["readers_below_roc_step"]["findings"]["edema"]
        truth = labels()[:, OBSERVATIONS.index("Edema")]
        calls = {name: reads()[name][:, OBSERVATIONS.index("Edema")] for name in COMPARISON}
        vote = (sum(calls.values()) >= 2).astype(int)
        for point, said in ((entry["readers"]["bc8"], calls["bc8"]), (entry["majority_vote"], vote)):
            expected = (recall_score(truth, said), recall_score(truth, said, pos_label=0), precision_score(truth, said))
            assert expected == pytest.approx([point[name] for name in ("sensitivity", "specificity", "precision")])
        assert "below" not in entry["majority_vote"]

    def test_delong_gives_each_finding_an_interval_and_the_mean_none(self, report: dict[str, Any]) -> None:
        """Beside the bootstrap: on the logit scale, of one finding; the signature names both."""
        score = metrics(report)["mean_auroc_5"]
        for entry in score["findings"].values():
            bootstrap, delong = entry["intervals"]
            assert ("bootstrap", "delong", "logit") == (bootstrap["method"], delong["method"], delong["scale"])
            assert delong["low"] < entry["value"] < delong["high"]
        assert (None, "DeLong's interval is of one finding, not of a mean") == (
            score["intervals"][1]["low"],
            score["intervals"][1]["reason"],
        )
        assert "|ci:bootstrap1000/item+delong|" in score["signature"]

    def test_delong_says_that_it_takes_items_as_independent(self, tmp_path: Path) -> None:
        """Where patients have several items, a note stands beside the interval."""
        project = frozen_project(tmp_path / "project")
        old = (
            "kind: roc_auc\n    protocol: zero_shot\n    average: macro\n    interval: {method: bootstrap, unit: item, "
        )
        new = old.replace("interval: {", "interval: {method: delong, level: 0.9}\n    # {")
        other = project.define("v2", (old, new))
        project.freeze(other)
        project.submit(reference=other)
        (note,) = [note for note in map(str, project.score(reference=other).notes) if "DeLong" in note]
        assert "DeLong's intervals take 20 items of 10 groups as independent" in note

    def test_a_mean_without_delongs_interval_is_printed_without_words(self, scored: Competition) -> None:
        """Of a mean there is none: the report has the reason, what is printed shows the bootstrap alone."""
        project = Project(scored.root)
        for command in (("show", f"{TEST}/ours"), ("leaderboard", TEST.benchmark)):
            out = project.run(*command).out
            assert "no interval" not in out
        (line,) = [one for one in project.run("show", f"{TEST}/ours").out.splitlines() if "mean_auroc_5 on" in one]
        assert " by " not in line

    def test_the_column_of_images_may_be_called_as_chexpert_calls_it(self, tmp_path: Path) -> None:
        """`Path` beside `Study`: predictions per image of the test set, brought together by study."""
        made = competition(tmp_path)
        made.freeze()
        made.submit()
        header, *rows = csv.reader(io.StringIO(predictions_csv()))
        views = [[f"{row[0]}/view{view}_frontal.jpg", *row[1:]] for row in rows for view in (1, 2)]
        notes = made.submit("images", csv_text(["Path", *header[1:]], views))
        assert any("1,000 images -> 500 studies" in note for note in notes)
        assert made.score()["scores"] == made.score("images")["scores"]

    def test_the_printed_report_shows_counts_points_and_vote(self, scored: Competition) -> None:
        """Every convention with its total, and each reader's point; the vote is named as not counted."""
        out = Project(scored.root).run("show", f"{TEST}/ours").out
        assert all(words in out for words in ("readers_below_both_step", " of 15", "majority vote (not counted)"))

    def test_scoring_and_auditing_again_hold(self, scored: Competition, report: dict[str, Any]) -> None:
        """The report stays as it is, and every link that needs no source or git holds."""
        assert "unchanged" == score(TEST, "ours", scored.registry).state
        states = {link.name: link.state for link in audit_system(TEST, "ours", scored.registry).links}
        assert "held" == states["scored again"]
        states = {link.name: link.state for link in audit_definition(TEST, scored.registry, scored.store).links}
        assert "broken" not in states.values()

    @pytest.mark.parametrize("rows", [True, False])
    def test_c8_the_order_of_predictions_changes_no_score(
        self, tmp_path: Path, report: dict[str, Any], rows: bool
    ) -> None:
        """C8: predictions come in any order of studies and tasks."""
        made = competition(tmp_path)
        made.freeze()
        made.submit(data=shuffled(predictions_csv(), rows=rows))
        assert report["scores"] == made.score()["scores"]

    def test_scores_above_1_are_taken_as_they_are(self, scored: Competition, report: dict[str, Any]) -> None:
        """Only their order matters: nothing is clipped, and a note says so."""
        notes = scored.submit("logits", predictions_csv(10 * predictions() - 3))
        assert any("values outside [0, 1]" in note and "taken as they are" in note for note in notes)
        again = scored.score("logits")["scores"]
        assert [one["value"] for one in report["scores"]] == [one["value"] for one in again]

    def test_c6_prefix_and_separator_never_matter(self, scored: Competition, report: dict[str, Any]) -> None:
        """C6: any mount, either separator and the view file lead to the same study."""
        text = predictions_csv().replace("CheXpert-v1.0/", "D:\\data\\CheXpert-v1.0-small\\").replace("/", "\\")
        notes = scored.submit("windows", text.replace("study1,", "study1\\view1_frontal.jpg,"))
        assert any("500 images -> 500 studies, agg=max" in note for note in notes)
        assert metrics(report)["mean_auroc_5"]["value"] == metrics(scored.score("windows"))["mean_auroc_5"]["value"]

    def test_c6_a_path_without_its_folder_is_refused(self, scored: Competition) -> None:
        """C6: without train/, valid/ or test/ nobody knows the study."""
        text = predictions_csv().replace("CheXpert-v1.0/test/", "")
        assert "no train/, valid/ or test/ folder" in refused(lambda: scored.submit("bare", text), SubmissionError)

    @pytest.mark.parametrize("head", ["Pleural_Effusion", "Effusion", "pleural effusion"])
    def test_c7_spellings_of_one_task(self, scored: Competition, head: str) -> None:
        """C7: underscores, case and the declared alias name the same column."""
        name = f"named-{head.lower().replace('_', '-').replace(' ', '.')}"
        scored.submit(name, predictions_csv().replace("Pleural Effusion", head, 1))
        assert 5 == len(metrics(scored.score(name))["mean_auroc_5"]["findings"])

    def test_c7_two_columns_of_one_task_are_refused(self, scored: Competition) -> None:
        """C7: which of them is meant is not for us to say."""
        text = predictions_csv(columns=(*TASKS, "Edema")).replace("Effusion,Edema\n", "Effusion,edema \n", 1)
        assert "edema" in refused(lambda: scored.submit("twice", text), SubmissionError)

    def test_c9_all_fourteen_columns_are_welcome(self, scored: Competition) -> None:
        """C9: the nine observations that no task scores are ignored with a count, and never averaged."""
        wide = np.zeros((len(STUDIES), 14))
        wide[:, [OBSERVATIONS.index(name) for name in TASKS]] = predictions()
        text = csv_text(["Study", *OBSERVATIONS], ([s, *row] for s, row in zip(STUDIES, wide.tolist(), strict=True)))
        assert any(
            "8 columns ignored (other labels of the data set)" in note for note in scored.submit("fourteen", text)
        )
        assert 5 == len(metrics(scored.score("fourteen"))["mean_auroc_5"]["findings"])

    def test_c9_a_missing_task_is_refused(self, scored: Competition) -> None:
        """C9: four tasks have no mean of five."""
        text = predictions_csv(columns=[name for name in TASKS if name != "Edema"])
        assert "no column for 'Edema'" in refused(lambda: scored.submit("four", text), SubmissionError)

    def test_c11_images_without_ids_are_refused(self, scored: Competition) -> None:
        """C11: 668 rows are not 500 studies, and nothing is aligned by row number."""
        from cxrspec.submit import Request, submit

        buffer = io.BytesIO()
        np.save(buffer, np.zeros((668, 5)))
        request = Request(TEST, "array", "zero_shot", buffer.getvalue(), "p.npy")
        text = refused(lambda: submit(request, scored.registry), SubmissionError)
        assert "668" in text
        assert "500" in text

    def test_c13_a_task_without_positives_has_no_readers_below(self, tmp_path: Path) -> None:
        """C13: one class has no curve: the count is null with the reason, and so is the mean; none is 0."""
        nobody = labels()
        nobody[:, OBSERVATIONS.index("Edema")] = 0
        calls = {name: values.copy() for name, values in reads().items()}
        for name in REFERENCE:
            calls[name][:, OBSERVATIONS.index("Edema")] = 0
        files = {"groundtruth": sheet(nobody)} | {name: sheet(calls[name]) for name in REFERENCE}
        made = competition(tmp_path, files, **{"edema: 78": "edema: 0"})
        made.freeze()
        made.submit()
        found = metrics(made.score())["readers_below_roc_step"]
        assert (None, None) == (found["value"], found["total"])
        assert "no positive among 500 items" == found["findings"]["edema"]["reason"]
        assert found["findings"]["atelectasis"]["value"] is not None
        ran = Project(made.root).run("score", str(TEST))
        assert (1, True) == (ran.code, "undefined (no positive among 500 items)" in ran.out)

    def test_a_reader_who_calls_nothing_is_not_counted_as_above(self, tmp_path: Path) -> None:
        """Without calls there is no precision: on precision-recall the count is null with the reason, not on ROC."""
        calls = reads()["bc4"].copy()
        calls[:, OBSERVATIONS.index("Edema")] = 0
        made = competition(tmp_path, {"bc4": sheet(calls)})
        made.freeze()
        made.submit()
        found = metrics(made.score())
        entry = found["readers_below_pr_step"]["findings"]["edema"]
        assert (None, "reader bc4 calls nothing positive") == (entry["value"], entry["reason"])
        assert "undefined for edema: reader bc4 calls nothing positive" == found["readers_below_pr_step"]["reason"]
        assert found["readers_below_roc_step"]["findings"]["edema"]["value"] is not None

    def test_c14_what_the_system_is_called_changes_no_score(self, scored: Competition, report: dict[str, Any]) -> None:
        """C14: the card is text beside the scores: without one, a note asks which weights these are."""
        assert any("weights" in note for note in scored.submit("nameless"))
        assert report["scores"] == scored.score("nameless")["scores"]


class TestStudies:
    @pytest.fixture
    def valid(self, tmp_path: Path) -> Competition:
        """The validation definition with the user's own copy of its file."""
        made = competition(tmp_path)
        text = (Path(__file__).parent.parent / "specs/chexpert-competition/valid-v1.yaml").read_bytes()
        made.write("specs/chexpert-competition/valid-v1.yaml", text)
        made.write("data/CheXpert-v1.0-small/valid.csv", valid_file().encode())
        return made

    @staticmethod
    def views(first: float, second: float) -> str:
        """Return scores of every image of the validation file: the first view's, and those of all further ones."""
        rows = []
        for line in valid_file().splitlines()[1:]:
            path = line.split(",")[0]
            number = int(path.split("patient")[1][:5])
            base = number % 7 / 10
            rows.append([path, *[base + (first if "view1" in path else second)] * 5])
        return csv_text(["Path", *TASKS], rows)

    def test_c1_the_public_file_has_234_images_of_200_studies(self, valid: Competition) -> None:
        """C1: both are counted; the lock records the digest of the file that it found."""
        lock = valid.freeze(VALID).lock
        assert (200, 234) == (lock.subsets["valid"]["items"], lock.subsets["valid"]["images"])
        assert 64 == len(lock.document["sources"]["chexpert"]["valid"]["sha256"])

    def test_c1_image_scores_become_study_scores_with_both_counts(self, valid: Competition) -> None:
        """C1: `234 images -> 200 studies, agg=max` stands in the notes and in the report."""
        valid.freeze(VALID)
        assert any("234 images -> 200 studies, agg=max" in n for n in valid.submit("a", self.views(0.0, 0.1), VALID))
        assert any("234 images -> 200 studies, agg=max" in note for note in valid.score("a", VALID)["notes"])

    def test_c2_the_mean_only_if_the_definition_says_so(self, valid: Competition) -> None:
        """C2: `aggregate: mean` is another definition, with another number from the same file."""
        valid.freeze(VALID)
        text = (valid.root / "specs/chexpert-competition/valid-v1.yaml").read_text()
        mean = text.replace("valid-v1\n", "valid-mean-v1\n").replace("unit: study", "unit: study\n  aggregate: mean")
        valid.write("specs/chexpert-competition/valid-mean-v1.yaml", mean.encode())
        other = type(VALID)("chexpert-competition", "valid-mean-v1")
        valid.freeze(other)
        for name in ("valid-v1", "valid-mean-v1"):
            valid.submit("a", self.views(0.0, 0.1), type(VALID)("chexpert-competition", name))
        found = [valid.score("a", one) for one in (VALID, other)]
        assert found[0]["definition_digest"] != found[1]["definition_digest"]
        assert found[0]["scores"][0]["value"] != found[1]["scores"][0]["value"]
        assert any("234 images -> 200 studies, agg=mean" in note for note in found[1]["notes"])

    def test_c4_blank_in_the_users_copy_is_refused(self, valid: Competition) -> None:
        """C4: a copy whose labels were emptied is not read as negative."""
        valid.write("data/CheXpert-v1.0-small/valid.csv", with_cell(valid_file(), "Edema", "").encode())
        said = refused(lambda: valid.freeze(VALID), DefinitionError)
        assert "subset valid, finding edema: 0 labels are uncertain (-1) and 1 blank" in said

    def test_another_copy_is_refused_once_it_is_frozen(self, valid: Competition) -> None:
        """The digest that was found is the pin from then on."""
        from cxrspec.errors import RegistryError

        valid.freeze(VALID)
        valid.write("data/CheXpert-v1.0-small/valid.csv", valid_file("0").encode())
        with pytest.raises(RegistryError, match="was frozen with"):
            valid.freeze(VALID)


class TestFields:
    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [
            ("bc8: comparison-readers/bc8", "bc1: comparison-readers/bc8", "'bc1' is a reference reader too"),
            ("bc8: comparison-readers/bc8", "bc8: reference-readers/bc7", "'bc8' is a reference reader too"),
            ("bc7: reference-readers/bc7", "bc7: reference-readers/bc5", "has the file of the reference reader 'bc5'"),
            ("bc8: comparison-readers/bc8", "bc8: comparison-readers/bc6", "the file of the comparison reader 'bc6'"),
            ("bc8: comparison-readers/bc8", "bc8: labels", "has the file of the labels"),
            ("    bc7: reference-readers/bc7\n", "", "the vote of 4 readers may be tied"),
            ("  comparison: {bc4", "  compared: {bc4", "unknown field 'compared'"),
            ("kind: roc_auc", "kind: average_precision", "DeLong's variance is that of a ROC-AUC"),
            ("kind: roc_auc", "kind: rocauc", "allowed are roc_auc, average_precision, readers_below_curve"),
            ("line: step", "line: staircase", "allowed are step, interpolated"),
            ("method: delong", "method: hanley", "allowed are bootstrap, delong"),
            ("unit: study", "unit: image\n  aggregate: mean", "with unit: image leave it out"),
            (
                "encoding: four_value",
                "encoding: separated_list\n  column: Labels\n  separator: ';'",
                "one column per finding",
            ),
        ],
    )
    def test_contradictions_are_refused_where_they_stand(self, tmp_path: Path, old: str, new: str, said: str) -> None:
        """Readers of two kinds, tied votes, unknown conventions: each with its place and what is allowed."""
        made = competition(tmp_path, **{old: new})
        path = made.registry.spec_path(TEST)
        assert said in refused(lambda: load_definition(path), DefinitionError)

    def test_a_reader_counts_once_whatever_the_file_is_called(self, tmp_path: Path) -> None:
        """The pin tells, not the name: another URL with the sha256 of another reader is that reader."""
        made = competition(tmp_path, {"bc8": label_files()["bc1"]})
        said = refused(lambda: load_definition(made.registry.spec_path(TEST)), DefinitionError)
        assert "readers.comparison.bc8: 'bc8' is a reference reader too" in said

    def test_files_without_a_pin_are_compared_when_they_are_opened(self, tmp_path: Path) -> None:
        """Two own files of one content: the digests tell."""
        made = competition(tmp_path)
        text = made.registry.spec_path(TEST).read_text()
        start, end = text.index("  comparison-readers:\n"), text.index("  reference-readers:\n")
        own = "".join(f"{name}: {name}.csv, " for name in COMPARISON).rstrip(", ")
        source = f"  comparison-readers: {{kind: file, files: {{{own}}}, licence: L, attribution: A}}\n"
        made.write(f"specs/{TEST.benchmark}/{TEST.version}.yaml", (text[:start] + source + text[end:]).encode())
        for name, of in (("bc4", "bc4"), ("bc6", "bc4"), ("bc8", "groundtruth")):
            made.write(f"{name}.csv", label_files()[of].encode())
        said = refused(made.freeze, DefinitionError)
        assert "comparison-readers/bc6: reader bc6 has the very file of reader bc4 (sha256 " in said
        assert "comparison-readers/bc8: reader bc8 has the very file of the labels" in said

    def test_readers_are_needed_where_they_are_counted(self, tmp_path: Path) -> None:
        """A metric of readers and a majority need readers."""
        text = competition(tmp_path).registry.spec_path(TEST).read_text()
        start, end = text.index("readers:\n  comparison"), text.index("subsets:")
        path = tmp_path / "specs/chexpert-competition/test-2022-v1.yaml"
        path.write_text(text[:start] + text[end:])
        said = refused(lambda: load_definition(path), DefinitionError)
        assert "there are no readers.reference whose majority the labels could be" in said
        assert 12 == said.count("there are no readers.comparison that could lie below a curve")

    def test_a_subset_that_is_only_fitted_on_needs_no_reads(self, tmp_path: Path) -> None:
        """Readers read what is scored; training studies have blank reads."""
        task = load_definition(competition(tmp_path).registry.spec_path(TEST)).task.model_dump()
        task["protocols"]["probe"] = TINY["protocols"]["probe"]
        decided = FindingsTask.model_validate(task)
        columns = [["1", "0"]] * 5 + [["", ""]] * (len(decided.column_names) - 5)
        assert [] == decided.check_subset("train", columns)
        assert 8 == len(decided.check_subset("test", columns))

    def test_a_protocol_without_metrics_is_refused(self, tmp_path: Path) -> None:
        """A definition may have neither, to freeze labels only, but not a protocol that nothing scores."""
        text = (Path(__file__).parent.parent / "specs/chexpert-labels/train-table1-v1.yaml").read_text()
        path = tmp_path / "specs/chexpert-labels/train-table1-v1.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(text)
        assert load_definition(path).task.protocol_names == ()
        path.write_text(text.replace("protocols: {}", "protocols: {zero_shot: {}}"))
        assert "no metric scores this protocol" in refused(lambda: load_definition(path), DefinitionError)
