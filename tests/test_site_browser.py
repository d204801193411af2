"""The site in a real browser: silent, self-contained, accessible, whole at every width, in light, dark and print."""

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from competition import TEST, competition, predictions, predictions_csv
from cxrspec.report.site import shown_references, write_site
from project import FOLDER, REF, SPEC, Project, authored_project, embeddings_csv, run_command, scores_csv
from questions import ANSWERS, Questions, answers_csv
from test_grading import GRADES, HUMAN, JUDGE, filled, record
from test_reported import ENTRY

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
MISSING = [name for name in ("playwright", "axe_playwright_python") if importlib.util.find_spec(name) is None]
MISSING += [] if CHROMIUM else ["a Chromium (Debian's package chromium)"]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"the pages are not looked at: {', '.join(MISSING)} is missing")

PAGES = (
    "index.html",
    "tiny/v1/index.html",
    "tiny/v1/systems/ours.html",
    "tiny/v1/systems/probed.html",
    "tiny/wide-v2/index.html",
    "tiny/wide-v2/systems/ours.html",
    "tiny/draft/index.html",
    "read/index.html",
    f"read/{TEST.benchmark}/{TEST.version}/index.html",
    f"read/{TEST.benchmark}/{TEST.version}/systems/ours.html",
    "asked/small-vqa/v1/index.html",
    "asked/small-vqa/v1/systems/ours.html",
)
AXE_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
CONTRAST = {"type": "rule", "values": ["color-contrast"]}


def enriched(report: Any) -> None:
    """Give a report all that a page can show: a second interval, strata, an undefined finding, a rewritten value."""
    for score in report["scores"]:
        for one in (score, *score["findings"].values()):
            one["intervals"].append({**one["intervals"][0], "unit": "group"})
        part = {key: score[key] for key in ("value", "reason", "n_items", "n_groups", "intervals", "findings")}
        score |= {"strata": {"view": {name: dict(part) for name in ("AP", "PA")}}, "n_in_no_stratum": {"view": 0}}
    finding = report["scores"][0]["findings"]["effusion"]
    finding |= {"value": None, "reason": "no positive among 20 items"}
    finding["intervals"] = [{**one, "low": None, "high": None, "reason": "undefined"} for one in finding["intervals"]]
    counts = {"items": 312, "groups": 203, "n_items": 1013, "n_groups": 595}
    report["overlap"] = {"bound": "exact", "subsets": {"test": counts}, "notes": [], "reason": None}


def wide_definition(project: Project) -> Any:
    """Write a second version with prompts and so many metrics that a leaderboard has a row for each."""
    prompts = "{edema: {positive: an edema, negative: none}, effusion: {positive: water, negative: dry}}"
    metrics = "".join(
        f"  - {{name: a_metric_with_quite_a_long_name_{at}, kind: roc_auc, protocol: zero_shot, average: macro,\n"
        "     interval: {method: bootstrap, unit: item, resamples: 100, level: 0.9, max_left_out: 1.0}}\n"
        for at in range(7)
    )
    return project.define(
        "wide-v2",
        ("title: A tiny benchmark", "title: A wide one\nsupersedes: v1\nchange: More of them."),
        ("zero_shot: {}", f"zero_shot: {{prompts: {prompts}}}"),
        ("metrics:\n", f"metrics:\n{metrics}"),
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of a project that has everything a page can show."""
    project = authored_project(tmp_path_factory.mktemp("project"))
    long_words = "A caveat with_a_very_long_word_that_has_no_place_to_break_" * 3
    project.edit(SPEC, "caveats: [It is tiny.]", f"caveats: [It is tiny., {long_words}]")
    wide = wide_definition(project)
    run_command("git", "init", "-q", "-b", "main", cwd=project.root)
    for reference in (REF, wide):
        project.freeze(reference)
        project.submit("ours", reference=reference, card={"description": "A system.", "weights_id": "w" * 70})
        project.score("ours", reference=reference)
    project.submit("probed", embeddings_csv(), protocol="probe", trained_on="tiny@v1:train")
    project.score("probed")
    project.submit("unscored", scores_csv())
    project.commit("All of it")
    project.edit_json(f"{FOLDER}/reports/ours.json", enriched)
    project.write("registry/tiny/reported/someone.yaml", ENTRY)
    project.define("draft", ("title: A tiny benchmark", "title: A draft\nsupersedes: wide-v2"))
    out = tmp_path_factory.mktemp("site")
    write_site(shown_references(project.registry), project.registry, out)
    write_read(tmp_path_factory.mktemp("read"), out / "read")
    write_asked(tmp_path_factory.mktemp("asked"), out / "asked")
    return out


def write_read(root: Path, out: Path) -> None:
    """Write the site of a competition: DeLong's interval, readers on curves, two systems."""
    made = competition(root, **{"redistribute: false": "redistribute: true"})
    made.freeze()
    made.submit()
    made.submit("weak", predictions_csv(predictions(0.6, 5)))
    for system in ("ours", "weak"):
        made.score(system)
    write_site(made.registry.frozen(), made.registry, out)


def write_asked(root: Path, out: Path) -> None:
    """Write the site of answers to questions, one system graded by a person and a judge."""
    (root / "specs").mkdir()
    made = Questions(root)
    made.freeze()
    made.submit()
    made.submit(answers_csv(dict.fromkeys(ANSWERS, "yes")), "yes")
    for grader in (HUMAN, JUDGE):
        record(made, filled(made, GRADES), grader)
    for system in ("ours", "yes"):
        made.score(system)
    write_site(made.registry.frozen(), made.registry, out)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser: Any, site: Path) -> Iterator[Any]:
    """Open a page of the site by name, width and scheme; what it says or asks for is kept in `told`."""
    contexts = []

    def open_page(name: str, width: int = 1280, scheme: str = "light") -> Any:
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.told = []
        page.on("console", lambda message: page.told.append(message.text))
        page.on("pageerror", lambda error: page.told.append(str(error)))
        page.on("request", lambda request: page.told.append(request.url) if request.url != page.address else None)
        page.address = (site / name).as_uri()
        page.goto(page.address)
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_silent_and_asks_for_nothing(opened: Any, name: str) -> None:
    """No console message, no error, and no request but for the page itself."""
    page = opened(name)
    assert [] == [told for told in page.told if told != "data:,"]


@pytest.mark.parametrize("name", [name for name in PAGES if "probed" not in name])
def test_axe_finds_nothing(opened: Any, name: str) -> None:
    """No violation of WCAG 2.2 AA or best practice, at both ends of the widths; in the dark, no want of contrast."""
    from axe_playwright_python.sync_playwright import Axe

    page = opened(name)
    for width, scheme, rules in ((1280, "light", AXE_RULES), (360, "light", AXE_RULES), (360, "dark", CONTRAST)):
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)
        found = Axe().run(page, options={"runOnly": rules}).response
        told = [(one["id"], one["nodes"][0]["html"], one["nodes"][0]["failureSummary"]) for one in found["violations"]]
        assert [] == told, f"at {width} px, {scheme}"
        assert "color-contrast" in [one["id"] for one in found["passes"]]


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_wider_than_the_window(opened: Any, name: str) -> None:
    """A page never scrolls sideways, from a small phone to a desk."""
    page = opened(name)
    for width in (320, 375, 768, 1024, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert width == page.evaluate("document.documentElement.scrollWidth")


def test_dark_is_dark(opened: Any) -> None:
    """The scheme of the reader decides: text is light on dark, and pictures take their colours along."""
    script = """() => {
        const light = (text) => text.match(/[0-9.]+/g).slice(0, 3).map(Number).reduce((a, b) => a + b) / 765;
        const style = (name) => getComputedStyle(document.querySelector(name));
        return [light(style("body").backgroundColor), light(style("body").color), light(style(".frame").fill)];
    }"""
    paper, ink, frame = opened(PAGES[2], scheme="light").evaluate(script)
    assert paper > 0.9 > 0.3 > ink
    assert frame > 0.9
    paper, ink, frame = opened(PAGES[2], scheme="dark").evaluate(script)
    assert paper < 0.2 < 0.8 < ink
    assert frame < 0.2


@pytest.mark.parametrize("name", PAGES[:3])
def test_the_keyboard_reaches_the_content_first(opened: Any, name: str) -> None:
    """The first stop is a visible link that leads past the navigation; every later stop is outlined."""
    page = opened(name)
    page.keyboard.press("Tab")
    focused = page.locator(":focus")
    assert "Skip to the content" == focused.inner_text()
    assert focused.bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    assert "content" == page.evaluate("document.activeElement.id")
    page.keyboard.press("Tab")
    assert "none" != page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert page.evaluate("document.getElementById('content').contains(document.activeElement)")


@pytest.mark.parametrize("name", PAGES)
def test_every_link_leads_to_a_page(opened: Any, site: Path, name: str) -> None:
    """As the browser resolves them, all links lead to files of the site."""
    targets = opened(name).eval_on_selector_all("a[href]", "links => links.map(link => link.href.split('#')[0])")
    assert [] == [target for target in targets if not Path(target.removeprefix("file://")).is_file()]


def test_paper_shows_what_a_screen_folds(opened: Any) -> None:
    """In print there is no navigation, and what is folded on a screen is spread out."""
    page = opened(PAGES[5])
    table = page.locator("details:not([open]) table").first
    assert not table.is_visible()
    page.emulate_media(media="print")
    assert table.is_visible()
    assert not page.locator(".contents").is_visible()


def test_a_strip_stands_on_its_axis(opened: Any) -> None:
    """The dot of a value is where the ticks say, on a desk and on a phone."""
    script = """() => {
        const table = document.querySelector(".forest");
        const middle = (one) => { const box = one.getBoundingClientRect(); return box.x + box.width / 2; };
        const ticks = [...table.querySelectorAll(".axis span")].map((one) => [Number(one.textContent), middle(one)]);
        const value = Number(table.querySelector(".value").textContent);
        return [ticks[0], ticks.at(-1), value, middle(table.querySelector("tbody .point"))];
    }"""
    for width in (360, 1280):
        (low, left), (high, right), value, found = opened(PAGES[2], width).evaluate(script)
        assert left + (value - low) / (high - low) * (right - left) == pytest.approx(found, abs=1.5)


def test_a_name_is_never_squeezed(opened: Any) -> None:
    """The first column of a forest has room for a word, whatever stands beside it."""
    script = "Math.min(...[...document.querySelectorAll('.forest tbody th')].map((one) => one.offsetWidth || 999))"
    for width in (375, 768, 900, 1280):
        for name in (PAGES[2], PAGES[9]):
            assert opened(name, width).evaluate(script) >= 100
