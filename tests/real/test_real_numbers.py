"""The published numbers, through the product's own commands."""

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from places import ROOT, Run

pytestmark = pytest.mark.real

POOL = "nih-cxr14-findings@adjudicated-pool-v1"
OFFICIAL = "nih-cxr14-findings@official-v3"
FOURTEEN = "nih-cxr14-fourteen@official-v1"
REPRODUCTION = "nih-cxr14-fourteen@chexnet-reproduction-v1"
TWO = "nih-cxr14-adjudicated@pneumothorax-nodule-v1"
FOUR = "nih-cxr14-adjudicated@majkowska-2020-v1"
BOXES = "nih-cxr14-localization@bbox-2017-v1"
PREDS = "303332d593f56dc3c8191f2a903f09043c93f7205179d03189f3eaaf6247ad40"

Freeze = Callable[[str], None]


def report(run: Run, reference: str) -> dict:
    """Score a submission and return its report."""
    return json.loads(run("score", reference, "--json").stdout)[0]["report"]


@pytest.mark.parametrize("reference", [POOL, TWO, FOUR, OFFICIAL, FOURTEEN, REPRODUCTION, BOXES])
def test_every_definition_freezes_to_the_committed_lock(
    run: Run, frozen: Freeze, project: Path, reference: str
) -> None:
    """Freezing from the sources gives the lock that is in git, whose `expect` all held; caveats may be newer."""
    frozen(reference)
    folder = Path("registry", *reference.split("@"))
    committed, new = (json.loads((root / folder / "lock.json").read_bytes()) for root in (ROOT, project))
    known, found = (lock["description"].pop("caveats") for lock in (committed, new))
    assert committed == new
    assert set(known) <= set(found)


def test_official_counts_are_all_expected(shared: Path) -> None:
    """Every count of nih_official.json stands under `expect` of the definition of all fourteen findings."""
    lock = json.loads((ROOT / "registry/nih-cxr14-fourteen/official-v1/lock.json").read_text())
    findings = {theirs: ours for ours, theirs in lock["definition"]["findings"].items()}
    expected = lock["description"]["expect"]
    for name, published in json.loads((shared / "expected/nih_official.json").read_text()).items():
        if name == "about":
            continue
        claims = expected["roster" if name == "all" else name]
        positives = {ours: {"value": published["positives"][theirs]} for theirs, ours in findings.items()}
        assert positives == claims["tallies"]["positives"]
        assert {"value": published["no_finding"]} == claims["tallies"]["none"]
        assert published["images"] == claims["items"]["value"]
        assert published["patients"] == claims["groups"]["value"]
        assert {view: {"value": n} for view, n in published["views"].items()} == claims["covariates"]["view"]


@pytest.mark.parametrize(("reference", "mean"), [(POOL, 0.576), (OFFICIAL, 0.580)])
def test_metadata_floor(run: Run, frozen: Freeze, reference: str, mean: float) -> None:
    """Age, sex, view and follow-up number alone reach the published mean AUROC within 0.015."""
    frozen(reference)
    run("baseline", "metadata", reference)
    scores = report(run, f"{reference}/metadata-only")["scores"]
    assert mean == pytest.approx(scores[0]["value"], abs=0.015)


def test_committed_reports_are_those_of_this_code(run: Run, frozen: Freeze) -> None:
    """Scoring again gives the committed numbers of the metadata floor within the definition's tolerance."""
    frozen(POOL)
    run("baseline", "metadata", POOL)
    committed = json.loads(
        (ROOT / "registry/nih-cxr14-findings/adjudicated-pool-v1/reports/metadata-only.json").read_text()
    )
    found = report(run, f"{POOL}/metadata-only")
    assert committed["scores"][0]["value"] == pytest.approx(found["scores"][0]["value"], abs=found["tolerance"])


def mined_labels(run: Run, reference: str, *, check: bool = True) -> str:
    """Submit NIH's own labels as scores; return what the command said on stderr."""
    findings = ["--finding", "pneumothorax=Pneumothorax", "--finding", "nodule_or_mass=Nodule|Mass"]
    arguments = ["baseline", "labels", reference, "--system", "nih-text-mined-labels", "--covariate", "nih_labels"]
    return run(*arguments, *findings, check=check).stderr


def test_text_mined_labels_against_radiologists(run: Run, frozen: Freeze) -> None:
    """NIH's own labels find 97 of 195 pneumothoraces and 134 of 295 nodules or masses: AUROC 0.7196 and 0.6962."""
    frozen(TWO)
    mined_labels(run, TWO)
    findings = report(run, f"{TWO}/nih-text-mined-labels")["scores"][0]["findings"]
    assert 0.7196 == pytest.approx(findings["pneumothorax"]["value"], abs=5e-5)
    assert 0.6962 == pytest.approx(findings["nodule_or_mass"]["value"], abs=5e-5)
    assert (195, 295) == (findings["pneumothorax"]["n_positive"], findings["nodule_or_mass"]["n_positive"])


def test_text_mined_labels_lack_two_of_four_findings(run: Run, frozen: Freeze) -> None:
    """On the four adjudicated findings the same labels are refused: they name no fracture and no airspace opacity."""
    frozen(FOUR)
    assert "no column for 'Airspace opacity', 'Fracture'" in mined_labels(run, FOUR, check=False)


@pytest.fixture(scope="session")
def preds(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The published predictions of the CheXNet reproduction, rows shuffled and packed."""
    header, *rows = (shared / "mirror" / PREDS).read_text().splitlines()
    random.Random(1).shuffle(rows)
    path = tmp_path_factory.mktemp("preds") / "preds.csv.gz"
    path.write_bytes(gzip.compress("\n".join([header, *rows]).encode()))
    return path


def submit_preds(run: Run, reference: str, preds: Path, *, check: bool = True) -> str:
    """Submit the reproduction's predictions; return what the command said on stderr."""
    arguments = ["--system", "shuffled", "--protocol", "zero_shot", "--predictions", str(preds), "--head", "*=prob_*"]
    return run("submit", reference, *arguments, check=check).stderr


def test_chexnet_reproduction_to_the_last_digit(run: Run, frozen: Freeze, shared: Path, preds: Path) -> None:
    """All fourteen published AUROCs come out to 1e-12, whatever the order of the rows."""
    frozen(REPRODUCTION)
    submit_preds(run, REPRODUCTION, preds)
    findings = report(run, f"{REPRODUCTION}/shuffled")["scores"][0]["findings"]
    lock = json.loads((ROOT / "registry/nih-cxr14-fourteen/chexnet-reproduction-v1/lock.json").read_text())
    published = json.loads((shared / "expected/chexnet_reproduction.json").read_text())["auc"]
    found = {theirs: findings[ours]["value"] for ours, theirs in lock["definition"]["findings"].items()}
    assert published == pytest.approx(found, abs=1e-12)


def test_chexnet_reproduction_covers_no_official_subset(run: Run, frozen: Freeze, preds: Path) -> None:
    """On the official test list the same file is refused: most items are missing, and nothing is scored on a part."""
    frozen(FOURTEEN)
    assert "20,383 of 25,596 items missing" in submit_preds(run, FOURTEEN, preds, check=False)


def test_chexnet_reproduction_may_have_seen_most_of_the_official_test(run: Run, frozen: Freeze, project: Path) -> None:
    """Trained outside its own test list, it can know 20,383 of 25,596 items and 2,207 of 2,797 patients, at most."""
    frozen(FOURTEEN)
    frozen(REPRODUCTION)
    table = project / "registry/nih-cxr14-fourteen/official-v1/test.tsv"
    trained_on = ("--trained-on", f"outside {REPRODUCTION}:test")
    run("submit", FOURTEEN, "--system", "r", "--protocol", "zero_shot", "--predictions", str(table), *trained_on)
    counts = {"items": 20383, "n_items": 25596, "groups": 2207, "n_groups": 2797}
    found = report(run, f"{FOURTEEN}/r")["overlap"]
    assert ("at_most", {"test": counts}) == (found["bound"], found["subsets"])


def test_chexnet_reproduction_has_seen_nothing_of_its_own_test(run: Run, frozen: Freeze, preds: Path) -> None:
    """Its own test shares no item and no patient with the images outside it; the committed report says so."""
    frozen(REPRODUCTION)
    committed = ROOT / "registry/nih-cxr14-fourteen/chexnet-reproduction-v1"
    counts = {"items": 0, "n_items": 22433, "groups": 0, "n_groups": 6187}
    report = json.loads((committed / "reports/chexnet-reproduction.json").read_text())
    assert ("at_most", {"test": counts}) == (report["overlap"]["bound"], report["overlap"]["subsets"])
    arguments = ("--system", "own", "--protocol", "zero_shot", "--predictions", str(preds), "--head", "*=prob_*")
    run("submit", REPRODUCTION, *arguments, "--trained-on", report["trained_on"])
    assert "overlap: 0; rows left aside" in run("score", f"{REPRODUCTION}/own").stdout


def test_train_subset_of_official_v3_keeps_shares(run: Run, frozen: Freeze, project: Path) -> None:
    """The 500 chosen images keep each finding's share of the 86,524 to less than one image, or are lifted to eight."""
    frozen(OFFICIAL)
    lock = json.loads((project / "registry/nih-cxr14-findings/official-v3/lock.json").read_text())["subsets"]["train"]
    for finding, n_positive in lock["positives"].items():
        share = 500 * lock["pool"]["positives"][finding] / lock["pool"]["items"]
        assert 8 == n_positive if share < 8 else abs(n_positive - share) < 1
