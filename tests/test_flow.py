"""The whole way: killed at any moment, two at once, and through DVC to another machine and back."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from cxrspec.reference import Reference
from project import (
    FOLDER,
    GIT_IDENTITY,
    LOCK,
    REF,
    SPEC,
    Project,
    authored_project,
    frozen_project,
    scores_csv,
    states,
)

TESTS = Path(__file__).parent

KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
import cxrspec.files, cxrspec.freeze, cxrspec.registry, cxrspec.submit, project
import cxrspec.predictions.values, cxrspec.tasks.findings.evaluation

FILES = {{module.__file__ for module in (cxrspec.files, cxrspec.registry, cxrspec.freeze, cxrspec.submit)}}
lines = 0

def trace(frame, event, argument):
    global lines
    if frame.f_code.co_filename not in FILES:
        return None
    if event == "line":
        lines += 1
        if lines == point:
            os.kill(os.getpid(), signal.SIGKILL)
    return trace

def hold(*arguments, real=cxrspec.registry.holding):
    sys.settrace(trace)  # before anything is written, nothing can be left half done
    return real(*arguments)

cxrspec.registry.holding = hold

def run(root):
    {action}

point = 0
while True:
    point += {step}
    root = Path({root!r}, str(point))
    import shutil
    shutil.copytree({template!r}, root)
    child = os.fork()
    if not child:
        run(root)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(root, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, flush=True)
    if not os.WIFSIGNALED(status):
        break
"""


def kill_at_every_line(template: Project, folder: Path, action: str, step: int) -> list[Project]:
    """Run an action in processes that are killed after ever more lines of our code; return what each one left."""
    code = KILLED.format(tests=str(TESTS), action=action, step=step, root=str(folder), template=str(template.root))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "" == done.stderr
    ended = [line.split() for line in done.stdout.splitlines()]
    assert [["9"] * (len(ended) - 1), "0"] == [[signal for _, signal in ended[:-1]], ended[-1][1]]
    return [Project(Path(root)) for root, _ in ended]


def whole(project: Project, expected: dict[str, bytes]) -> bool:
    """Return whether every file that stands under its final name has all of its bytes."""
    return all(expected[name] == data for name, data in project.files().items() if not name.endswith(".unfinished"))


def test_freezing_may_be_killed_at_any_moment(tmp_path: Path) -> None:
    """Whatever line a process dies at: no half file, a whole lock or none, never before its tables; then it goes on."""
    template = authored_project(tmp_path / "template")
    expected = authored_project(tmp_path / "expected")
    expected.freeze()
    left = kill_at_every_line(template, tmp_path / "killed", "project.Project(root).freeze()", 7)
    assert len(left) > 30
    for project in left:
        assert whole(project, expected.files())
        assert not project.path(LOCK).exists() or set(expected.files()) <= set(project.files())
        assert project.freeze().state in ("frozen", "unchanged")
        with project.registry.writing():
            assert expected.files() == project.files()


def test_submitting_and_scoring_may_be_killed_at_any_moment(tmp_path: Path) -> None:
    """A submission is there when its submission.yaml is; a report is whole or absent; then both go on."""
    expected = frozen_project(tmp_path / "expected")
    template = frozen_project(tmp_path / "template")
    shutil.rmtree(template.path(f"{FOLDER}/submissions/ours"))
    template.path(f"{FOLDER}/reports/ours.json").unlink()
    action = "project.Project(root).submit(); project.Project(root).score()"
    left = kill_at_every_line(template, tmp_path / "killed", action, 11)
    assert len(left) > 10
    for project in left:
        assert whole(project, expected.files())
        project.submit()
        project.score()
        with project.registry.writing():
            assert expected.files() == project.files()


TOGETHER = """
import multiprocessing, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
import cxrspec.freeze, cxrspec.pipeline, cxrspec.score, project

def meet_once(module, name, barrier):
    real, met = getattr(module, name), []

    def wrapped(*arguments):
        found = real(*arguments)
        found = found if not hasattr(found, "send") else list(found)
        if not met:
            met.append(True)
            barrier.wait(60)
        return found

    setattr(module, name, wrapped)

def run(barrier, action):
    meet_once({module}, {name!r}, barrier)
    names = {{"Reference": project.Reference, "freeze": cxrspec.freeze, "pipeline": cxrspec.pipeline}}
    exec(action, {{**names, "project": project.Project(Path({root!r}))}})

context = multiprocessing.get_context("fork")
barrier = context.Barrier(2)
children = [context.Process(target=run, args=(barrier, action)) for action in {actions!r}]
[child.start() for child in children]
[child.join() for child in children]
sys.exit(sum(child.exitcode for child in children))
"""


def run_together(project: Project, module: str, name: str, *actions: str) -> None:
    """Run two actions in two processes that meet after they have read and before they write."""
    code = TOGETHER.format(tests=str(TESTS), root=str(project.root), module=module, name=name, actions=actions)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (0, "") == (done.returncode, done.stderr)


def test_two_may_freeze_the_same_definition_at_once(tmp_path: Path) -> None:
    """Both end well, and the files are those of one alone."""
    alone, project = (authored_project(tmp_path / name) for name in ("alone", "together"))
    alone.freeze()
    run_together(project, "cxrspec.freeze", "compile_definition", *["project.freeze()"] * 2)
    assert alone.files() == project.files()


def test_two_may_not_freeze_different_content_under_one_name(tmp_path: Path) -> None:
    """The second to write finds the first one's lock and is refused; the lock is one of the two, with its tables."""
    project = authored_project(tmp_path)
    refused = """
import cxrspec.errors
try:
    project.freeze()
except cxrspec.errors.RegistryError as error:
    assert ["frozen-changed"] == [issue.code for issue in error.issues]
    project.write("refused", "")
"""
    edited = """
load = freeze.load_definition
freeze.load_definition = lambda *names, **more: load(*names, **more).model_copy(update={"seed": 8})
"""
    run_together(project, "cxrspec.freeze", "compile_definition", refused, edited + refused)
    assert project.path("refused").exists()
    for table, digest in project.lock.tables.items():
        project.registry.read_table(REF, table, digest)


def test_two_may_score_at_once(tmp_path: Path) -> None:
    """D4: both wait for their turn to write, and the report is that of one alone."""
    project = frozen_project(tmp_path)
    before = project.files()
    project.path(f"{FOLDER}/reports/ours.json").unlink()
    run_together(project, "cxrspec.score", "evaluate_submission", *["project.score()"] * 2)
    assert before == project.files()


def test_two_definitions_frozen_at_once_both_have_their_stages(tmp_path: Path) -> None:
    """Neither process writes the pipeline from what it knew before the other one froze."""
    project = authored_project(tmp_path)
    project.path(".dvc").mkdir()
    project.define("v2")
    actions = [
        f"project.freeze(Reference('tiny', '{version}')); pipeline.update_pipelines(project.registry)"
        for version in ("v1", "v2")
    ]
    run_together(project, "cxrspec.pipeline", "_outdated", *actions)
    text = project.path("registry/dvc.yaml").read_text()
    assert [1, 1] == [text.count(f"  freeze-tiny_{version}:") for version in ("v1", "v2")]


# -- through DVC


def dvc(project: Project, *arguments: str, code: int = 0) -> str:
    """Run DVC in the project, with our command on the PATH, and return what it says."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **GIT_IDENTITY, "PATH": path, "DVC_NO_ANALYTICS": "1", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "dvc", *arguments]
    done = subprocess.run(command, cwd=project.root, env=environment, capture_output=True, text=True, check=False)
    assert code == min(done.returncode, 1), done.stdout + done.stderr
    return done.stdout + done.stderr


def dvc_project(root: Path, remote: Path) -> Project:
    """Write a project that uses git and DVC, with hard links into the cache and a folder as remote."""
    project = authored_project(root)
    project.write(".gitignore", "/.cxrspec/\n")
    project.write(".dvc/config", f"[core]\n remote = r\n[cache]\n type = hardlink\n['remote \"r\"']\n url = {remote}\n")
    project.write(".dvc/.gitignore", "/config.local\n/tmp\n/cache\n")
    project.git("init", "-q", "-b", "main")
    project.commit("Start")
    return project


def submit(project: Project, system: str) -> None:
    """Hand in scores as a user does."""
    file = project.write("../p.csv", scores_csv())
    ran = project.run("submit", "tiny@v1", f"--system={system}", "--protocol=zero_shot", f"--predictions={file}")
    assert 0 == ran.code, ran.err


def test_from_a_definition_to_another_machine_and_back(tmp_path: Path) -> None:
    """Freeze, reproduce, nothing to do, refuse an edit, take a submission, push, clone, pull, audit, find tampering."""
    project = dvc_project(tmp_path / "here", tmp_path / "remote")
    assert 0 == project.run("freeze", "tiny@v1").code
    submit(project, "ours")
    dvc(project, "repro", "-P")
    assert "Data and pipelines are up to date." in dvc(project, "repro", "-P")
    project.commit("Freeze and score")

    before, pipeline = project.files(), project.path("registry/dvc.yaml").read_bytes()
    project.edit(SPEC, "seed: 7", "seed: 8")
    said = dvc(project, "repro", "-P", code=1)
    assert "tiny@v1 is frozen, and these fields were changed: seed. Start the next version with 'cxrspec new" in said
    assert before == project.files()
    project.git("checkout", "-q", "--", SPEC)

    submit(project, "yours")
    assert pipeline == project.path("registry/dvc.yaml").read_bytes()
    dvc(project, "repro", "-P")
    assert {"ours", "yours"} == set(json.loads(project.path(f"{FOLDER}/metrics.json").read_bytes()))
    project.commit("Another system")
    assert "" == project.git("status", "--porcelain")

    dvc(project, "push")
    project.git("clone", "-q", str(project.root), str(tmp_path / "there"))
    clone = Project(tmp_path / "there")
    dvc(clone, "pull")
    audits = clone.run("audit", "--strict", "--json")
    assert 0 == audits.code, audits.out
    assert ["tiny@v1", "tiny@v1/ours", "tiny@v1/yours"] == [one["reference"] for one in audits.json]

    path = clone.path(f"{FOLDER}/test.tsv")
    stat, text = path.stat(), path.read_bytes()
    path.chmod(0o644)
    with path.open("r+b") as stream:  # through the hard link, into the cache
        stream.write(text.replace(b"\t1\t", b"\t0\t", 1))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    path.chmod(stat.st_mode)
    assert "Data and pipelines are up to date." in dvc(clone, "status")
    assert "broken" == states(clone.audit())["table test"]
    ran = clone.run("score", "tiny@v1")
    assert (1, True) == (ran.code, "the lock says" in ran.err)


def test_what_may_not_be_passed_on_stays_here(tmp_path: Path) -> None:
    """`redistribute: false`: after `dvc push` the remote has neither tables nor predictions, and items need a word."""
    project = dvc_project(tmp_path / "here", tmp_path / "remote")
    project.edit(SPEC, "attribution: nobody", "attribution: nobody\n    redistribute: false")
    assert 0 == project.run("freeze", "tiny@v1").code
    submit(project, "ours")
    dvc(project, "repro", "-P")
    dvc(project, "push")
    assert [] == [path for path in (tmp_path / "remote").rglob("*") if path.is_file()]
    assert 1 == project.run("items", "tiny@v1:test").code
    assert 0 == project.run("items", "tiny@v1:test", "--restricted").code
    assert [Reference("tiny", "v1")] == project.registry.frozen()
