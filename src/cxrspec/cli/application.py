"""Own what every command needs: the application, the types of arguments, the registry, and the way out."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cxrspec import __version__
from cxrspec.errors import CxrspecError, Issue
from cxrspec.reference import Reference

if TYPE_CHECKING:
    from cxrspec.registry import Registry
    from cxrspec.sources import Store


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="cxrspec", message="%(prog)s %(version)s")
def app() -> None:
    """Benchmarks of chest radiographs: declared in YAML, frozen once, scored exactly, audited by anyone."""


if TYPE_CHECKING:
    _ParamType = click.ParamType[Reference]
else:
    _ParamType = click.ParamType  # generic only for who checks types


class ReferenceType(_ParamType):
    """A reference of the command line; one that names more than the command takes is wrong usage."""

    name = "reference"

    def __init__(self, *, subset: bool = False, system: bool = False) -> None:
        self.subset, self.system = subset, system

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Reference:
        """Parse the text, or fail with the form that is allowed."""
        try:
            reference = value if isinstance(value, Reference) else Reference.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if reference.subset and not self.subset:
            self.fail(f"'{reference}' names a subset; write {reference.definition}", param, ctx)
        if reference.system and not self.system:
            self.fail(f"'{reference}' names a system; write {reference.definition}", param, ctx)
        return reference


DEFINITION = ReferenceType()
SCORED = ReferenceType(system=True)

definition_argument = click.argument("reference", type=DEFINITION, metavar="BENCHMARK@VERSION")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
mirror_option = click.option(
    "--mirror",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Folder of files called by their sha256, tried before the network; may be repeated.",
)


def open_registry() -> Registry:
    """Return the registry of the project around this folder, or of the one that CXRSPEC_ROOT names."""
    from cxrspec.registry import Registry

    root = os.environ.get("CXRSPEC_ROOT")
    return Registry.find(Path(root) if root else None)


@contextmanager
def open_store(registry: Registry, mirrors: Iterable[Path]) -> Iterator[Store]:
    """Yield the store that sources come from; downloads are shown while it is open."""
    from cxrspec.sources import Store
    from cxrspec.sources.progress import terminal_progress

    with terminal_progress() as progress:
        yield Store.from_environment(registry.root, mirrors, progress=progress)


def chosen(references: Sequence[Reference], every: bool, known: Callable[[], list[Reference]]) -> Sequence[Reference]:
    """Return the references that were named, or with `--all` all that are known; neither or both is wrong usage."""
    if bool(references) == every:
        raise click.UsageError("Name definitions, or give --all.")
    return references or known()


def run_each(references: Iterable[Reference], run: Callable[[Reference], bool | None]) -> bool:
    """Run for every reference, going on after problems; return whether any had one."""
    failed = False
    for reference in references:
        try:
            failed = bool(run(reference)) or failed
        except BrokenPipeError:
            raise
        except (CxrspecError, OSError, MemoryError) as error:
            failed = True
            _show(error)
    return failed


def print_json(value: Any) -> None:
    """Print a value as JSON on stdout."""
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def leave(failed: bool) -> None:
    """End the command with exit code 1 if anything failed."""
    click.get_current_context().exit(int(failed))


def main() -> None:
    """Run the command line; problems of ours end in exit code 1, without a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8")  # also where the machine is set to less: text is never lost
    try:
        try:
            app(prog_name="cxrspec")
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader of the pipe has what it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except (CxrspecError, OSError, MemoryError) as error:
        _show(error)
        sys.exit(1)


def _show(error: CxrspecError | OSError | MemoryError) -> None:
    from cxrspec.report import terminal

    if isinstance(error, MemoryError):
        terminal.show_issues([Issue("disk", "", "not enough memory for this file", "Use a larger machine")])
    elif isinstance(error, OSError):
        hint = "Is it there, is there room, and the right to read or write?"
        terminal.show_issues([Issue("disk", str(error.filename or ""), error.strerror or str(error), hint)])
    else:
        terminal.show_issues(error.issues)
