"""The static site: what each page says, that it needs nothing else, and that no row and no other file comes to harm."""

import re
import socket
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from cxrspec.curves import curves_of
from cxrspec.registry import Registry
from cxrspec.report.site import site_pages, write_site
from cxrspec.report.site.evidence import WITHHELD
from cxrspec.submission import load_submission
from project import (
    FOLDER,
    LOCK,
    REF,
    SPEC,
    TEST_ITEMS,
    TRAIN_ITEMS,
    Project,
    authored_project,
    embeddings_csv,
    frozen_project,
    refusal,
    scores_csv,
    value,
)

HOME, DEFINITION, SYSTEM = "index.html", "tiny/v1/index.html", "tiny/v1/systems/ours.html"
BREAK = "\N{SOFT HYPHEN}"
REPORT = f"{FOLDER}/reports/ours.json"


class Page(HTMLParser):
    """The elements and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep an element; a place where a word may break is none in its text."""
        if tag == "wbr":
            self.texts.append(BREAK)
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Keep a text."""
        self.texts.append(data)

    @property
    def text(self) -> str:
        """All text, blanks squeezed."""
        return " ".join(" ".join(self.texts).replace(f" {BREAK} ", "").split())

    def values(self, name: str) -> list[str]:
        """Return every value of an attribute."""
        return [str(found[name]) for _, found in self.elements if name in found]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a frozen project with one scored system."""
    return frozen_project(tmp_path)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the site of such a project, for tests that change nothing."""
    return pages(frozen_project(tmp_path_factory.mktemp("site")))


def pages(project: Project) -> dict[str, str]:
    """Return the site of the project."""
    return site_pages(project.registry.frozen(), project.registry)


def page(project: Project, name: str) -> Page:
    """Return one page of the site."""
    return Page(pages(project)[name])


def links(text: str) -> dict[str, str]:
    """Return the state of every link of a page's audit, by name."""
    return dict(re.findall(r'<span class="link">([^<]*)</span> <span class="state">([^<]*)</span>', text))


def restricted_project(root: Path) -> Project:
    """Return a project whose source may not be passed on, with a scored system."""
    project = authored_project(root)
    project.edit(SPEC, "attribution: nobody", "attribution: nobody\n    redistribute: false")
    project.freeze()
    project.submit()
    project.score()
    return project


# -- what the pages say


def test_there_is_a_page_for_each_definition_and_each_scored_system(project: Project) -> None:
    """The index, one definition, one system."""
    project.submit("unscored")
    assert {HOME, DEFINITION, SYSTEM} == set(pages(project))


def test_the_definition_page_says_what_a_score_stands_on(project: Project, site: dict[str, str]) -> None:
    """Digest, subset ids, sources with licence, counts, caveats and the commit that froze it are all there."""
    lock, text = project.lock, Page(site[DEFINITION]).text
    commit = project.git("log", "--format=%H", "--diff-filter=A", "--", LOCK).strip()
    file = lock.document["sources"]["labels"]["main"]
    wanted = [lock.definition_digest, *lock.subset_ids.values(), file["sha256"], "CC0", "It is tiny.", commit[:12]]
    assert [] == [word for word in wanted if word not in text]


def test_bars_show_the_share_of_positive_items(site: dict[str, str]) -> None:
    """7 of 20 items are positive for edema: 35 %."""
    assert "edema: 7 positive, 35.0 % of items" in Page(site[DEFINITION]).text


def test_the_leaderboard_has_value_interval_and_signature(project: Project, site: dict[str, str]) -> None:
    """What the report says stands in the forest plot, to three digits, with its signature."""
    score = project.report()["scores"][0]
    interval = score["intervals"][0]
    text = Page(site[DEFINITION]).text
    assert f"{score['value']:.3f} [{interval['low']:.3f}, {interval['high']:.3f}]" in text
    assert score["signature"] in text


def test_the_system_page_has_every_finding_with_its_counts(project: Project, site: dict[str, str]) -> None:
    """Value and numbers of positive and negative items stand in one row."""
    found = project.report()["scores"][0]["findings"]["edema"]
    row = re.search(r"edema edema: .*?effusion", Page(site[SYSTEM]).text)
    assert row is not None
    assert f"{found['value']:.3f}" in row[0]
    assert row[0].split()[-3:-1] == [str(found["n_positive"]), str(found["n_negative"])]


def test_prompts_are_shown_as_they_are_frozen(tmp_path: Path) -> None:
    """Each finding's texts stand in a table."""
    project = authored_project(tmp_path)
    prompts = "{edema: {positive: an edema, negative: none}, effusion: {positive: water, negative: dry}}"
    project.edit(SPEC, "zero_shot: {}", f"zero_shot: {{prompts: {prompts}}}")
    project.freeze()
    assert "negative positive edema none an edema effusion dry water" in page(project, DEFINITION).text


def test_an_undefined_score_is_said_with_its_reason(project: Project) -> None:
    """Null is neither zero nor left out."""

    def undefine(report: Any) -> None:
        score = report["scores"][0]
        ends = {"low": None, "high": None, "reason": "no positive"}
        score |= {"value": None, "reason": "no positive among 20 items"}
        score["intervals"] = [{**one, **ends} for one in score["intervals"]]

    project.edit_json(REPORT, undefine)
    made = pages(project)
    for name in (DEFINITION, SYSTEM):
        assert "undefined no positive among 20 items" in Page(made[name]).text


def test_each_interval_has_a_lane_and_a_legend(project: Project) -> None:
    """A second interval, by group, is drawn beside the first and named."""

    def add(report: Any) -> None:
        for score in report["scores"]:
            for one in (score, *score["findings"].values()):
                one["intervals"].append({**one["intervals"][0], "unit": "group"})

    project.edit_json(REPORT, add)
    found = page(project, SYSTEM)
    assert {"interval lane0", "interval lane1"} <= set(found.values("class"))
    assert "90 % interval by group (bootstrap, 100 resamples)" in found.text


def test_strata_of_a_report_are_drawn(project: Project) -> None:
    """Each stratum of a covariate is a row under the number of all."""

    def add(report: Any) -> None:
        score = report["scores"][0]
        part = {key: score[key] for key in ("n_items", "n_groups", "reason", "intervals", "findings")} | {
            "value": 0.123
        }
        score |= {"strata": {"age": {"80+": part, "[0, 80)": part}}, "n_in_no_stratum": {"age": 2}}

    project.edit_json(REPORT, add)
    text = page(project, SYSTEM).text
    assert "mean_auroc_zero_shot on test by age" in text
    assert text.index("[0, 80)") < text.index("80+")
    assert 2 == text.count("0.123 [")


def test_versions_stand_after_what_they_supersede(project: Project) -> None:
    """An authored version is shown as not frozen, with what it changes, and has no page."""
    project.define("a2", ("title: A tiny benchmark", "title: Next\nsupersedes: v1\nchange: Fewer of them."))
    found = page(project, DEFINITION)
    assert "v1 frozen this page" in found.text
    assert "a2 not frozen Supersedes v1. Fewer of them." in found.text
    assert found.text.index("v1 frozen") < found.text.index("a2 not frozen")
    assert "a2/index.html" not in "".join(found.values("href"))


def test_a_faulty_draft_is_named_and_stops_nothing(project: Project) -> None:
    """A definition file that cannot be read is shown as faulty."""
    project.write("specs/tiny/v2.yaml", "benchmark: [")
    assert "v2 faulty" in page(project, DEFINITION).text


@pytest.mark.parametrize("state", ["unscored", "refused", "outdated"])
def test_a_system_without_a_number_is_named_with_the_reason(project: Project, state: str) -> None:
    """It stands under the leaderboard, never in it, and has no page."""
    if state == "refused":
        project.write(f"{FOLDER}/submissions/ours/submission.yaml", "format: 1")
    elif state == "outdated":
        project.edit_json(REPORT, lambda report: report.update(definition_digest="0" * 64))
    else:
        project.path(REPORT).unlink()
    made = pages(project)
    assert SYSTEM not in made
    assert f"ours {state}" in Page(made[DEFINITION]).text


# -- evidence


def test_the_audit_is_drawn_link_by_link(project: Project, site: dict[str, str]) -> None:
    """Every link of the audits has its mark."""
    for name, audit in ((DEFINITION, project.audit()), (SYSTEM, project.audit_system())):
        assert links(site[name]) == {link.name: link.state for link in audit.links}


def test_a_rewritten_number_is_drawn_as_a_broken_link(project: Project) -> None:
    """A cross, not a tick, where scoring again gives another number."""
    project.edit_json(REPORT, lambda report: report["scores"][0].update(value=0.9))
    text = pages(project)[SYSTEM]
    assert "broken" == links(text)["scored again"]
    assert 1 == Page(text).values("class").count("icon broken")


def test_what_is_not_here_is_not_checked_and_has_no_curve(project: Project) -> None:
    """Without predictions the page says why there is no curve, and the numbers stay."""
    next(project.path(f"{FOLDER}/submissions/ours").glob("predictions.*")).unlink()
    text = pages(project)[SYSTEM]
    found = Page(text)
    assert "not checked" == links(text)["scored again"]
    assert "panel" not in found.values("class")
    assert "is not on this machine" in found.text.partition("Not drawn: ")[2].partition("Subgroups")[0]


def test_curves_are_drawn_per_finding(site: dict[str, str]) -> None:
    """ROC and precision-recall of both findings."""
    assert 4 == Page(site[SYSTEM]).values("class").count("panel")


@pytest.mark.parametrize("protocol", ["zero_shot", "probe"])
def test_what_curves_show_is_what_is_scored(project: Project, protocol: str) -> None:
    """The area under the curve that is drawn is the number of the report."""
    from sklearn.metrics import auc

    project.submit("other", embeddings_csv() if protocol == "probe" else scores_csv(), protocol=protocol)
    project.score("other")
    submission = load_submission(project.registry, REF, "other")
    for name, drawn in (curves_of(submission, project.lock, project.registry) or {})["test"].items():
        area = auc(drawn.points.false_positive_rate, drawn.points.true_positive_rate)
        assert area == pytest.approx(value(project.report("other"), f"mean_auroc_{protocol}", name))


def test_rows_that_may_not_be_passed_on_stay_out(tmp_path: Path) -> None:
    """No item id and no curve, and the page says so; counts and scores stay."""
    project = restricted_project(tmp_path)
    made = pages(project)
    text = "\n".join(made.values())
    assert [] == [item for item in (*TEST_ITEMS, *TRAIN_ITEMS) if re.search(rf"\b{item}\b", text)]
    assert 'class="panel"' not in text
    assert WITHHELD in text
    assert "may not be passed on: this page holds counts, scores and digests only" in Page(made[DEFINITION]).text


def test_a_broken_link_tells_no_row_that_may_not_be_passed_on(tmp_path: Path) -> None:
    """A refusal that names items is left out, with the command that tells it."""
    project = restricted_project(tmp_path)
    path = next(project.path(f"{FOLDER}/submissions/ours").glob("predictions.*"))
    data = scores_csv(TEST_ITEMS[1:]).encode()
    old = load_submission(project.registry, REF, "ours").predictions.sha256
    path.write_bytes(data)
    for name in (f"{FOLDER}/submissions/ours/submission.yaml", REPORT):
        project.edit(name, old, sha256(data).hexdigest())
    assert "t00" in str(project.audit_system().links)
    text = "\n".join(pages(project).values())
    assert "t00" not in text
    assert "run 'cxrspec audit tiny@v1/ours' to read why" in Page(text).text


def test_a_refusal_tells_no_row_that_may_not_be_passed_on(tmp_path: Path) -> None:
    """Why a submission is refused is left out of a restricted page."""
    project = restricted_project(tmp_path)
    project.write(f"{FOLDER}/submissions/ours/submission.yaml", "format: t00")
    text = page(project, DEFINITION).text
    assert "ours refused left out: it may name rows" in text
    assert "t00" not in text


# -- the files


def test_the_same_registry_gives_the_same_bytes(project: Project, tmp_path: Path) -> None:
    """Two folders, two runs, no clock."""
    for name in ("a", "b"):
        write_site([REF], project.registry, tmp_path / name)
    found = {name: Project(tmp_path / name).files(".") for name in ("a", "b")}
    assert found["a"] == found["b"]
    assert {HOME, DEFINITION, SYSTEM} == set(found["a"])


def test_nothing_names_this_machine(project: Project) -> None:
    """No absolute path and no host name."""
    text = "\n".join(pages(project).values())
    assert str(project.root) not in text
    assert socket.gethostname() not in text


def test_pages_need_nothing_else(site: dict[str, str]) -> None:
    """No script, no file, no address: links lead to other pages of the site or to a place on the page."""
    for name, text in site.items():
        found = Page(text)
        assert not {"script", "img", "iframe", "object", "embed"} & {tag for tag, _ in found.elements}
        assert [] == found.values("src")
        ids = found.values("id")
        assert len(ids) == len(set(ids))
        for target in found.values("href"):
            path, _, anchor = target.partition("#")
            there = str((Path("/") / name).parent.joinpath(path).resolve())[1:] if path else name
            assert target == "data:," or there in site
            assert not anchor or anchor in Page(site[there]).values("id")


def test_every_picture_has_words(site: dict[str, str]) -> None:
    """Each SVG is an image with a title."""
    for text in site.values():
        pictures = re.findall(r"<svg [^>]*>(<title>[^<]+</title>)?", text)
        assert all(pictures)
        assert len(pictures) == len(re.findall(r'<svg [^>]*role="img"', text))


def test_texts_of_others_cannot_become_elements(project: Project) -> None:
    """A card, a title or a caveat with markup is shown as it is written."""
    evil = "<script>alert('&')</script>"
    project.submit("evil", card={"model_name": evil, "description": evil}, trained_on=evil)
    project.score("evil")
    text = pages(project)["tiny/v1/systems/evil.html"]
    assert "<script" not in text
    assert evil in Page(text).text


def test_other_files_of_the_folder_stay(project: Project, tmp_path: Path) -> None:
    """A file of the user's beside the pages is left alone."""
    mine = tmp_path / "site" / "tiny" / "notes.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    write_site([REF], project.registry, tmp_path / "site")
    assert "mine" == mine.read_text()


def test_a_page_of_somebody_else_is_not_overwritten(project: Project, tmp_path: Path) -> None:
    """A file that cxrspec did not write stands where a page belongs: all are named, nothing is written."""
    mine = tmp_path / "site" / HOME
    mine.parent.mkdir()
    mine.write_text("<html>mine</html>")
    found = refusal(lambda: write_site([REF], project.registry, tmp_path / "site"))
    assert [("disk", "index.html: exists, and cxrspec did not write it. Choose another folder with --out")] == found
    assert [mine] == [path for path in (tmp_path / "site").rglob("*") if path.is_file()]


def test_every_fault_is_told_and_nothing_is_written(project: Project, tmp_path: Path) -> None:
    """Damaged reports of two definitions are both named."""
    other = project.define("v2", ("seed: 7", "seed: 8"))
    project.freeze(other)
    project.submit(reference=other)
    project.score(reference=other)
    for name in (REPORT, "registry/tiny/v2/reports/ours.json"):
        project.write(name, "{")
    registry = Registry(project.root)
    found = refusal(lambda: write_site(registry.frozen(), registry, tmp_path / "site"))
    assert [REPORT, "registry/tiny/v2/reports/ours.json"] == [text.partition(":")[0] for _, text in found]
    assert not (tmp_path / "site").exists()


def test_the_command_writes_the_named_definitions(project: Project) -> None:
    """`cxrspec report tiny --out FOLDER` says how many pages there are and where to begin."""
    ran = project.run("report", "tiny", "--out", "pages")
    assert (0, "3 pages in pages; open pages/index.html\n") == (ran.code, ran.out)
    assert project.path("pages/tiny/v1/systems/ours.html").is_file()
    assert [DEFINITION, SYSTEM, HOME] == project.run("report", "--out", "pages", "--json").json


@pytest.mark.parametrize(
    "arguments", [["report"], ["report", "other", "--out", "x"], ["report", "tiny@v1:test", "--out", "x"]]
)
def test_a_call_that_names_nothing_is_wrong_usage(project: Project, arguments: list[str]) -> None:
    """Without a folder, or with an unknown benchmark, nothing is written."""
    assert 2 == project.run(*arguments).code
    assert not project.path("x").exists()
