"""The static site of every kind of definition: answers and grades, labels alone, readers, drafts, shared ranks."""

import re
from pathlib import Path
from typing import Any

import pytest

from competition import COMPARISON, TEST, competition, predictions, predictions_csv
from cxrspec.registry import Registry
from cxrspec.report.site import shown_references, site_pages
from cxrspec.report.site.scores import leaders
from project import REF, SPEC, Project, authored_project, frozen_project, refusal
from questions import Questions
from test_cases import Made
from test_grading import GRADES, HUMAN, JUDGE, filled, record
from test_reported import ENTRY
from test_site import DEFINITION, HOME, REPORT, SYSTEM, Page

ANSWERED, ASKED = "small-vqa/v1/systems/ours.html", "small-vqa/v1/index.html"
READ = f"{TEST.benchmark}/{TEST.version}/systems/ours.html"


def pages(registry: Registry) -> dict[str, str]:
    """Return the site of everything that has a page."""
    return site_pages(shown_references(registry), registry)


def text_of(project: Project, name: str) -> str:
    """Return the text of one page."""
    return Page(pages(project.registry)[name]).text


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The site of a system whose answers a person and a judge have graded."""
    project = Questions(tmp_path_factory.mktemp("vqa"))
    (project.root / "specs").mkdir()
    project.freeze()
    project.submit()
    for grader, grades in ((HUMAN, GRADES), (JUDGE, {**GRADES, "s2-q01": "1"})):
        record(project, filled(project, grades), grader)
    project.score()
    return pages(project.registry)


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """The sites of a competition with readers whose labels may not be passed on, and of one whose labels may."""
    found = {}
    for name, changes in (("restricted", {}), ("open", {"redistribute: false": "redistribute: true"})):
        made = competition(tmp_path_factory.mktemp(name), **changes)
        made.freeze()
        made.submit()
        made.submit("weak", predictions_csv(predictions(0.6, 5)))
        for system in ("ours", "weak"):
            made.score(system)
        found[name] = pages(made.registry)
    return found


# -- answers


def test_answers_are_shown_by_reading_and_question_type(answered: dict[str, str]) -> None:
    """Both readings stand apart, each with its types; a type without such a question is left out."""
    text = Page(answered[ANSWERED]).text
    assert "closed_accuracy on test (strict reading, read as yes or no)" in text
    assert "closed_accuracy_lenient on test (lenient reading, read as yes or no)" in text
    first = text.partition("closed_accuracy on test")[2].partition("closed_accuracy_lenient")[0]
    assert "presence" in first
    assert "location" not in first


def test_every_counter_of_answers_is_shown(answered: dict[str, str]) -> None:
    """Of four closed-ended questions one is answered by a refusal, one is said to be so, two are not."""
    text = Page(answered[ANSWERED]).text
    counters = "question type items positive negative said yes said no undecided refusal empty missing excluded"
    assert f"{counters} all 4 2 2 1 1 1 1 0 0 3" in text


def test_each_grader_is_a_result_of_its_own(answered: dict[str, str]) -> None:
    """Person and judge stand on both pages with their own numbers, and how far they agree."""
    for name in (ANSWERED, ASKED):
        text = Page(answered[name]).text
        assert "A. Reader (human" in text
        assert "judge-x 2026-01 (judge, prompt" in text
        assert "Graders agree" in text
    assert "open_mean_grade on test A. Reader" not in Page(answered[ANSWERED]).text.partition("Graded answers")[0]
    assert re.search(r"ours A\. Reader \(human\) 0\.500 ", Page(answered[ASKED]).text)


def test_how_answers_are_read_is_shown(answered: dict[str, str]) -> None:
    """Columns, phrases, the closed-ended rule, question types and conditions."""
    text = Page(answered[ASKED]).text
    for words in ("by: leading_yes_no", "no evidence of", "image: dicom_id", "presence Presence", "edema Edema"):
        assert words in text


def test_counts_of_questions_say_what_they_count(answered: dict[str, str]) -> None:
    """No rounded percentage, and yes and no with their noun."""
    text = Page(answered[ASKED]).text
    assert "4 closed-ended 3 open-ended 2 closed-ended that say yes 2 closed-ended that say no" in text
    assert "percent" not in text


# -- labels alone


def test_cases_are_shown_though_nothing_is_scored(tmp_path: Path) -> None:
    """The conditions and the labeler stand there; no table of metrics and no empty section does."""
    made = Made(tmp_path)
    made.freeze()
    found = Page(pages(made.registry)["mimic-cxr-vqa-like/cases-v1/index.html"])
    assert "No metric: items and labels are frozen" in found.text
    assert "labeler chexpert" in found.text
    assert "protocols" not in found.values("id")
    assert "#protocols" not in found.values("href")


def test_findings_without_a_metric_are_shown(tmp_path: Path) -> None:
    """A definition that only freezes labels has a page that says so, and a card too."""
    project = authored_project(tmp_path)
    text = project.path(SPEC).read_text()
    start, end = text.index("protocols:"), text.index("expect:")
    project.write(SPEC, f"{text[:start]}protocols: {{}}\nmetrics: []\n{text[end:]}")
    project.freeze()
    made = pages(project.registry)
    assert "nothing is scored on it" in Page(made[DEFINITION]).text
    assert "nothing is scored." in Page(made[HOME]).text


# -- readers


@pytest.mark.parametrize("kind", ["restricted", "open"])
def test_readers_are_shown_by_convention_with_their_points(read: Any, kind: str) -> None:
    """Counts, rates and margins are aggregates, so that a restricted page has them too."""
    text = Page(read[kind][READ]).text
    assert "readers_below_roc_step 3 of 3" in text
    assert re.search(r"atelectasis bc4 0\.\d{3} 0\.\d{3} 0\.\d{3} [+-]0\.\d{4}", text)
    assert "majority vote (not counted)" in text


def test_readers_stand_on_the_curves_that_may_be_drawn(read: Any) -> None:
    """Each reader and the vote on both curves of every finding, none on a restricted page."""
    marks = Page(read["open"][READ]).values("class").count("reader")
    assert marks == 5 * 2 * (len(COMPARISON) + 1)
    assert 0 == Page(read["restricted"][READ]).values("class").count("reader")


def test_an_interval_that_is_not_there_is_a_dash_with_a_footnote(read: Any) -> None:
    """DeLong's interval of a mean: the reason stands once below the table."""
    text = Page(read["open"][READ]).text
    shown = text.partition("Readers How many")[0].partition("Finding Interval")[2]
    assert re.search(r"0\.929 \[0\.\d{3}, 0\.\d{3}\] – 1 ", shown)
    assert 1 == shown.count("1 no interval: DeLong's interval is of one finding, not of a mean")


def test_a_group_by_pattern_is_a_whole_sentence(read: Any) -> None:
    """It says where the pattern is searched."""
    name = f"{TEST.benchmark}/{TEST.version}/index.html"
    assert "a group is what shares what ^test/(patient[0-9]+)/ finds in the item id." in Page(read["open"][name]).text


# -- ranks


def test_ranks_stand_on_the_number_that_ranks(tmp_path: Path) -> None:
    """As the board writes them, once per protocol, with what they mean."""
    project = frozen_project(tmp_path)
    project.submit("other")
    project.score("other")
    found = Page(pages(project.registry)[DEFINITION])
    assert 2 == found.values("class").count("rank")
    assert "[1]" not in found.text
    assert "Systems that share a rank are not separated by a paired bootstrap" in found.text


def test_all_who_share_the_first_rank_lead(tmp_path: Path) -> None:
    """Two equal systems: neither is named alone."""
    project = frozen_project(tmp_path)
    project.submit("other")
    project.score("other")
    home = text_of(project, HOME)
    assert "2 systems share rank 1" in home
    assert home.index("other 0.") < home.index("ours 0.")


def test_more_leaders_than_a_card_holds_are_counted() -> None:
    """Three are named, of five that share the rank."""
    score = {"value": 0.5, "intervals": [], "subset": "test"}
    row = {"state": "scored", "protocol": "p", "rank": [1], "scores": {"m": score}}
    board = {"metrics": [{"name": "m", "protocol": "p"}], "systems": [{**row, "system": name} for name in "abcde"]}
    found = next(leaders(board))
    assert (5, ["a", "b", "c"]) == (found["n_sharing"], [name for name, _ in found["systems"]])


def test_a_system_trained_on_the_test_items_leads_with_the_word_only(tmp_path: Path) -> None:
    """It is named on the card as overlap, its page says what is covered, and it stands in no other list."""
    project = frozen_project(tmp_path)
    counts = {"items": 20, "groups": 10, "n_items": 20, "n_groups": 10}
    overlap = {"bound": "exact", "subsets": {"test": counts}, "notes": [], "reason": None}
    project.edit_json(REPORT, lambda report: report.update(overlap=overlap))
    made = pages(project.registry)
    assert "ours overlap 0." in Page(made[HOME]).text
    assert "overlap: 20 of 20 items, 10 of 10 patients" in Page(made[DEFINITION]).text
    assert "Without a score" not in Page(made[DEFINITION]).text
    assert "Rank overlap" in Page(made[SYSTEM]).text


def test_what_is_not_known_is_said(tmp_path: Path) -> None:
    """No declared training data: overlap unknown, on both pages."""
    project = frozen_project(tmp_path)
    project.edit_json(REPORT, lambda report: report.update(overlap=None))
    made = pages(project.registry)
    assert "overlap: unknown" in Page(made[DEFINITION]).text
    assert "Overlap with training data unknown" in Page(made[SYSTEM]).text


# -- descriptions and drafts


def test_what_was_mended_after_freezing_is_what_stands_there(tmp_path: Path) -> None:
    """Title, licence and caveat of the definition file, on every page that has them."""
    project = frozen_project(tmp_path)
    for old, new in (("CC0", "CC-BY"), ("It is tiny.", "Beware."), ("A tiny benchmark", "A better title")):
        project.edit(SPEC, old, new)
    made = pages(project.registry)
    definition = Page(made[DEFINITION]).text
    assert all(words in definition for words in ("licence CC-BY", "Beware.", "A better title"))
    assert "Beware." in Page(made[SYSTEM]).text
    assert "A better title" in Page(made[HOME]).text
    assert not any(words in "".join(made.values()) for words in ("It is tiny.", "A tiny benchmark"))


def test_a_version_is_shown_with_the_verdict(tmp_path: Path) -> None:
    """Whether numbers of both may be compared, why, and the honest bump."""
    project = frozen_project(tmp_path)
    project.define("v2", ("title: A tiny", "supersedes: v1\ntitle: A tiny"), ("seed: 7", "seed: 8"))
    assert re.search(
        r"(omparable|comparable)[a-z ]* with v1 \((major|minor|patch) bump\): ", text_of(project, DEFINITION)
    )


def test_a_draft_has_a_page_of_what_it_declares(tmp_path: Path) -> None:
    """What is measured, claimed and reported, prompts, sources with licences, caveats; and that it is not frozen."""
    project = authored_project(tmp_path)
    prompts = "{edema: {positive: an edema, negative: none}, effusion: {positive: water, negative: dry}}"
    project.edit(SPEC, "zero_shot: {}", f"zero_shot: {{prompts: {prompts}}}")
    project.write("registry/tiny/reported/someone.yaml", ENTRY)
    made = pages(project.registry)
    assert {HOME, DEFINITION} == set(made)
    found = Page(made[DEFINITION])
    wanted = (
        *("nobody has run 'cxrspec freeze tiny@v1' here", "mean_auroc_zero_shot", "licence CC0", "It is tiny."),
        *("test, items 20", "test, positives, edema 7", "edema an edema none", "Reported by others"),
    )
    assert [] == [words for words in wanted if words not in found.text]
    assert "not frozen" in Page(made[HOME]).text
    assert "1 result reported by others" in Page(made[HOME]).text
    assert DEFINITION in Page(made[HOME]).values("href")


def test_a_draft_says_what_it_waits_for(tmp_path: Path) -> None:
    """Files that are not here."""
    project = authored_project(tmp_path)
    project.path("data/labels.csv").unlink()
    assert "files of the user's own, which are not here: data/labels.csv" in text_of(project, DEFINITION)


def test_shards_that_nobody_has_named_are_said() -> None:
    """The reason on the page of a shipped definition, with the command that looks for them."""
    registry = Registry(Path(__file__).parent.parent)
    reference = next(one for one in registry.authored() if one.version == "atlas-n100-v1")
    text = Page(site_pages([reference], registry)["nih-cxr14-findings/atlas-n100-v1/index.html"]).text
    assert "the publisher does not name the 4 shards of 'data/*.parquet'" in text
    assert "cxrspec discover nih-cxr14-findings@atlas-n100-v1" in text


def test_the_command_writes_drafts_too(tmp_path: Path) -> None:
    """`cxrspec report BENCHMARK` of a benchmark that nobody has frozen."""
    project = authored_project(tmp_path)
    ran = project.run("report", "tiny", "--out", "pages")
    assert (0, "2 pages in pages; open pages/index.html\n") == (ran.code, ran.out)


def test_a_faulty_draft_that_is_asked_for_is_refused(tmp_path: Path) -> None:
    """Its issues are told; without its name it is left out."""
    project = authored_project(tmp_path)
    project.write(SPEC, "benchmark: [")
    assert refusal(lambda: site_pages([REF], project.registry))
    assert [] == shown_references(project.registry)


def test_every_link_of_every_kind_of_page_leads_somewhere(answered: dict[str, str], read: Any) -> None:
    """To a page of the site, or to a place on the page."""
    for site in (answered, *read.values()):
        for name, text in site.items():
            found = Page(text)
            assert len(found.values("id")) == len(set(found.values("id")))
            for target in found.values("href"):
                path, _, anchor = target.partition("#")
                there = str((Path("/") / name).parent.joinpath(path).resolve())[1:] if path else name
                assert target == "data:," or there in site
                assert not anchor or anchor in Page(site[there]).values("id")
