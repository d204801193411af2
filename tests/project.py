"""A whole tiny project on the disk: a definition with `file` sources, git, if wanted DVC, and systems with scores."""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from cxrspec.audit import Audit, audit_definition, audit_system
from cxrspec.cli import main
from cxrspec.errors import CxrspecError
from cxrspec.freeze import Frozen, freeze
from cxrspec.lock import Lock
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.report_file import read_report
from cxrspec.score import Scored, score
from cxrspec.sources import Store
from cxrspec.submission import Submission
from cxrspec.submit import Request, submit

REF = Reference("tiny", "v1")
SPEC = "specs/tiny/v1.yaml"
FOLDER = "registry/tiny/v1"
LOCK = f"{FOLDER}/lock.json"
TEST_ITEMS = [f"t{number:02d}" for number in range(20)]
TRAIN_ITEMS = [f"r{number:02d}" for number in range(40)]

DEFINITION = """\
# Two findings on a few images.
benchmark: tiny
definition_version: v1
title: A tiny benchmark
task: findings
seed: 7
sources:
  labels:
    kind: file
    files: {main: data/labels.csv}
    licence: CC0
    attribution: nobody
items:
  unit: image
  source: labels
  item_id: {column: image, form: file_name}
  group_id: {column: patient}
  covariates: {age: age, sex: sex, view: view, follow_up: follow_up}
splits:
  test: {where: {column: set, one_of: test}}
  train: {where: {column: set, one_of: train}}
findings: {edema: Edema, effusion: Effusion}
aliases: {effusion: [Pleural Effusion]}
labels: {encoding: separated_list, column: findings, separator: "|", negative: No Finding}
subsets:
  test: {pool: {split: test}, select: all}
  train: {pool: {split: train}, disjoint_from: test, disjoint_by: group_id, select: all}
protocols:
  zero_shot: {}
  probe: {fit_on: train, standardize: true, C: [0.1, 1.0], folds: 2, select_by: log_loss, solver: newton-cg,
          max_iter: 100, tol: 1.0e-6, tolerance: 5.0e-4}
metrics:
  - &metric
    name: mean_auroc
expect:
  roster: {items: 62}
  test: {items: 20, positives: {edema: 7, effusion: 10}}
caveats: [It is tiny.]
"""
METRICS = "".join(
    f"""\
  - name: mean_{short}_{protocol}
    kind: {kind}
    protocol: {protocol}
    average: macro
    interval: {{method: bootstrap, unit: item, resamples: 100, level: 0.9, max_left_out: 1.0}}
"""
    for protocol in ("zero_shot", "probe")
    for short, kind in (("auroc", "roc_auc"), ("ap", "average_precision"))
)
DEFINITION = DEFINITION.replace("  - &metric\n    name: mean_auroc\n", METRICS)


def labels_csv() -> str:
    """Return the one source: 20 test images of 10 patients, 40 of 20 to train on, two that no subset has."""
    lines = ["image,patient,set,findings,age,sex,view,follow_up"]
    named = [(name, "test") for name in TEST_ITEMS] + [(name, "train") for name in TRAIN_ITEMS]
    for number, (name, part) in enumerate([*named, ("x00", ""), ("x01", "")]):
        found = [label for label, step in (("Edema", 3), ("Effusion", 2)) if number % step == 0]
        cells = ("|".join(found) or "No Finding", f"{30 + number % 7}", "MF"[number % 2], ("AP", "PA")[number % 3 == 0])
        lines.append(f"{name}.png,p{number // 2:02d},{part},{','.join(cells)},{number % 4}")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Ran:
    """What one command came to."""

    code: int
    out: str
    err: str
    data: bytes = b""

    @property
    def json(self) -> Any:
        """Its standard output as JSON."""
        return json.loads(self.out)


@dataclass(frozen=True)
class Project:
    """A project in a folder of its own."""

    root: Path

    @property
    def registry(self) -> Registry:
        """The registry as a new process sees it."""
        return Registry(self.root)

    @property
    def store(self) -> Store:
        """A store without a cache or a network."""
        return Store(self.root / ".cxrspec" / "cache", root=self.root, offline=True)

    @property
    def lock(self) -> Lock:
        """The lock of the definition."""
        return self.registry.read_lock(REF)

    def path(self, name: str) -> Path:
        """Return a place in the project."""
        return self.root / name

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file of the project, and return its path."""
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace a text that stands in a file."""
        text = self.path(name).read_text()
        assert old in text, f"{old!r} is not in {name}"
        self.path(name).write_text(text.replace(old, new))

    def edit_json(self, name: str, change: Callable[[Any], object]) -> None:
        """Change a JSON file by a function."""
        document = json.loads(self.path(name).read_bytes())
        change(document)
        self.path(name).write_text(json.dumps(document))

    def define(self, version: str, *changes: tuple[str, str]) -> Reference:
        """Write another definition version, the first one with some texts replaced."""
        text = DEFINITION.replace("definition_version: v1", f"definition_version: {version}")
        for old, new in changes:
            assert old in text, f"{old!r} is not in the definition"
            text = text.replace(old, new)
        self.write(f"specs/tiny/{version}.yaml", text)
        return Reference("tiny", version)

    def freeze(self, reference: Reference = REF, *, check: bool = False) -> Frozen:
        """Freeze a definition."""
        return freeze(reference, self.registry, self.store, check=check)

    def submit(
        self, system: str = "ours", data: str | bytes = "", reference: Reference = REF, **more: Any
    ) -> Submission:
        """Submit scores (good ones, if none are given) under the protocol zero_shot."""
        content = (data or scores_csv()).encode() if isinstance(data, str) else data
        request = Request(reference, system, more.pop("protocol", "zero_shot"), content, "p.csv", **more)
        return submit(request, self.registry)[0]

    def score(self, system: str = "ours", reference: Reference = REF) -> Scored:
        """Score a system."""
        return score(reference, system, self.registry)

    def report(self, system: str = "ours") -> dict[str, Any]:
        """Return the report of a system."""
        found = read_report(self.registry, REF, system)
        assert found is not None
        return found

    def audit(self, *, deep: bool = False) -> Audit:
        """Audit the definition."""
        return audit_definition(REF, self.registry, self.store if deep else None)

    def audit_system(self, system: str = "ours") -> Audit:
        """Audit a system."""
        return audit_system(REF, system, self.registry)

    def files(self, folder: str = "registry") -> dict[str, bytes]:
        """Return the content of every file below a folder."""
        found = sorted(path for path in self.path(folder).rglob("*") if path.is_file())
        return {path.relative_to(self.root).as_posix(): path.read_bytes() for path in found}

    def git(self, *arguments: str) -> str:
        """Run git in the project."""
        return run_command("git", *arguments, cwd=self.root)

    def commit(self, message: str = "A state", *names: str) -> str:
        """Commit everything, or the files named, and return the commit's id."""
        self.git("add", *(names or ("-A",)))
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD").strip()

    def run(self, *arguments: str, cwd: Path | None = None, **environment: str) -> Ran:
        """Run a command line in this process, as `cxrspec ARGUMENTS` would."""
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        settings = {"CXRSPEC_CACHE": str(self.root / ".cxrspec" / "cache"), **environment}
        code: Any = 0
        with contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.chdir(cwd or self.root))
            stack.enter_context(mock.patch.dict(os.environ, settings))
            stack.enter_context(mock.patch.object(sys, "argv", ["cxrspec", *arguments]))
            stack.enter_context(contextlib.redirect_stdout(out))
            stack.enter_context(contextlib.redirect_stderr(err))
            try:
                main()
            except SystemExit as end:
                code = end.code
            out.flush()
            err.flush()
        data = out.buffer.getvalue()  # type: ignore[attr-defined]
        return Ran(int(code or 0), data.decode(), err.buffer.getvalue().decode(), data)  # type: ignore[attr-defined]


def scores_csv(ids: Iterable[str] = TEST_ITEMS, columns: tuple[str, ...] = ("Edema", "Effusion")) -> str:
    """Return scores that are neither perfect nor useless, the same ones in every run."""
    lines = [",".join(("image", *columns))]
    for name in ids:
        number = int(name[1:])
        lines.append(",".join((name, *(repr((number * step + 3) % 17 / 17) for step in range(5, 5 + len(columns))))))
    return "\n".join(lines) + "\n"


def embeddings_csv(ids: Iterable[str] = (*TEST_ITEMS, *TRAIN_ITEMS)) -> str:
    """Return two features per item."""
    return scores_csv(ids, ("first", "second"))


def run_command(*command: str, cwd: Path, **environment: str) -> str:
    """Run a command, fail with its words if it fails, and return what it prints."""
    settings = {**os.environ, **GIT_IDENTITY, **environment}
    done = subprocess.run(command, cwd=cwd, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


GIT_IDENTITY = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    **{f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def authored_project(root: Path) -> Project:
    """Write a project whose definition is not frozen; no git, no DVC."""
    project = Project(root)
    project.write(SPEC, DEFINITION)
    project.write("data/labels.csv", labels_csv())
    project.write(".gitignore", "/.cxrspec/\n*.tsv\n/registry/*/*/submissions/*/predictions.*\n")
    return project


def frozen_project(root: Path) -> Project:
    """Return a project that is frozen and committed, with the system `ours` scored."""
    shutil.copytree(_template(), root, dirs_exist_ok=True)
    return Project(root)


@cache
def _template() -> Path:
    """Build the frozen project once per process; it goes with the process."""
    folder = tempfile.mkdtemp(prefix="cxrspec-tests-")
    atexit.register(shutil.rmtree, folder)
    project = authored_project(Path(folder, "project"))
    project.git("init", "-q", "-b", "main")
    project.freeze()
    project.commit("Freeze")
    project.submit()
    project.score()
    project.commit("Score")
    return project.root


def record_in_dvc(project: Project, *names: str) -> None:
    """Write the dvc.lock and dvc.yaml that DVC would have written for these files."""
    from hashlib import md5

    outs = [{"path": name, "hash": "md5", "md5": md5(project.path(name).read_bytes()).hexdigest()} for name in names]
    project.write("dvc.lock", json.dumps({"schema": "2.0", "stages": {"all": {"cmd": "x", "outs": outs}}}))
    project.write("dvc.yaml", json.dumps({"stages": {"all": {"cmd": "x", "outs": list(names)}}}))


def frozen_names(project: Project) -> list[str]:
    """Return the names of the lock and of every table."""
    tables = [project.registry.table_path(REF, table) for table in project.lock.tables]
    return [project.registry.name(path) for path in (project.registry.lock_path(REF), *tables)]


def states(audit: Audit) -> dict[str, str]:
    """Return the state of every link by its name."""
    return {link.name: link.state for link in audit.links}


def broken(audit: Audit) -> list[str]:
    """Return the names of the links that are broken."""
    return [link.name for link in audit.links if link.state == "broken"]


def refusal(run: Callable[[], object]) -> list[tuple[str, str]]:
    """Return code and text of every issue that a call is refused with."""
    try:
        run()
    except CxrspecError as error:
        return [(issue.code, str(issue)) for issue in error.issues]
    raise AssertionError("nothing was refused")


def value(report: Mapping[str, Any], metric: str, finding: str | None = None) -> Any:
    """Return one number of a report."""
    score = next(one for one in report["scores"] if one["metric"] == metric)
    return score["value"] if finding is None else score["findings"][finding]["value"]
