"""Own what every command needs: the application, the types of arguments, the registry, and the way out."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cxrspec import __version__
from cxrspec.errors import CxrspecError, Issue
from cxrspec.reference import Reference

if TYPE_CHECKING:
    from cxrspec.registry import Registry
    from cxrspec.sources import Store

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Benchmarks of chest radiographs: declared in YAML, frozen once, scored exactly, audited by anyone.",
)


def any_reference(text: str | Reference) -> Reference:
    """Parse a reference of the command line; anything else is wrong usage."""
    try:
        return text if isinstance(text, Reference) else Reference.parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _definition(text: str | Reference) -> Reference:
    reference = any_reference(text)
    if reference.subset or reference.system:
        raise typer.BadParameter(f"'{reference}' names more than a definition; write {reference.definition}")
    return reference


def _scored(text: str | Reference) -> Reference:
    reference = any_reference(text)
    if reference.subset:
        raise typer.BadParameter(f"'{reference}' names a subset; write {reference.definition} or .../SYSTEM")
    return reference


_DEFINITION = "benchmark@definition_version"
_SYSTEM = f"{_DEFINITION}, or .../system"
Definition = Annotated[Reference, typer.Argument(parser=_definition, metavar="REF", help=_DEFINITION)]
Definitions = Annotated[
    list[Reference] | None, typer.Argument(parser=_definition, metavar="[REF]...", help=_DEFINITION)
]
Scored = Annotated[Reference, typer.Argument(parser=_scored, metavar="REF[/SYSTEM]", help=_SYSTEM)]
AllScored = Annotated[list[Reference] | None, typer.Argument(parser=_scored, metavar="[REF[/SYSTEM]]...", help=_SYSTEM)]
Subset = Annotated[Reference, typer.Argument(parser=any_reference, metavar="REF:SUBSET", help=f"{_DEFINITION}:subset")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Mirror = Annotated[
    list[Path] | None,
    typer.Option(help="Folder of files called by their sha256, tried before the network; may be repeated."),
]


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        print(f"cxrspec {__version__}")
        raise typer.Exit


def open_registry() -> Registry:
    """Return the registry of the project around this folder, or of the one that CXRSPEC_ROOT names."""
    from cxrspec.registry import Registry

    root = os.environ.get("CXRSPEC_ROOT")
    return Registry.find(Path(root) if root else None)


@contextmanager
def open_store(registry: Registry, mirrors: Iterable[Path] | None) -> Iterator[Store]:
    """Yield the store that sources come from; downloads are shown while it is open."""
    from cxrspec.sources import Store
    from cxrspec.sources.progress import terminal_progress

    with terminal_progress() as progress:
        yield Store.from_environment(registry.root, mirrors or (), progress=progress)


def chosen(references: list[Reference] | None, every: bool, known: Callable[[], list[Reference]]) -> list[Reference]:
    """Return the references that were named, or with `--all` all that are known; neither or both is wrong usage."""
    if bool(references) == every:
        raise typer.BadParameter("name definitions, or give --all")
    return references or known()


def run_each(references: Iterable[Reference], run: Callable[[Reference], bool | None]) -> bool:
    """Run for every reference, going on after problems; return whether any had one."""
    failed = False
    for reference in references:
        try:
            failed = bool(run(reference)) or failed
        except (CxrspecError, OSError) as error:
            if isinstance(error, BrokenPipeError):
                raise
            failed = True
            _show(error)
    return failed


def print_json(value: Any) -> None:
    """Print a value as JSON on stdout."""
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def main() -> None:
    """Run the command line; problems of ours end in exit code 1, without a traceback."""
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader of the pipe has what it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except (CxrspecError, OSError) as error:
        _show(error)
        sys.exit(1)


def _show(error: CxrspecError | OSError) -> None:
    from cxrspec.report import terminal

    if isinstance(error, OSError):
        hint = "Is it there, is there room, and the right to read or write?"
        terminal.show_issues([Issue("disk", str(error.filename or ""), error.strerror or str(error), hint)])
    else:
        terminal.show_issues(error.issues)
