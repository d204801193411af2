"""Own what every command needs: the application, the types of arguments, the registry, and the way out."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

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
    rich_markup_mode=None,  # plain help and errors, everywhere the same, without the time that rich takes to load
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 80,
        # a flag that is a bool from the start spares typer the pydantic by which it reads any other value
        "default_map": {
            "help": False,
            "install_completion": False,
            "show_completion": False,
            "list": {"help": False},
        },
    },
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cxrspec {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Benchmarks of chest radiographs: declared in YAML, frozen once, scored exactly, audited by anyone."""


class UsageError(typer.BadParameter):
    """Wrong usage that no single argument is to blame for: the message stands alone, and the exit code is 2."""

    def format_message(self) -> str:
        """Return the message as it is."""
        return self.message


def reference_parser(*, subset: bool = False, system: bool = False) -> Callable[[str | Reference], Reference]:
    """Return the parser of a reference; one that names more than the command takes is wrong usage."""

    def parse(value: str | Reference) -> Reference:
        try:
            reference = value if isinstance(value, Reference) else Reference.parse(value)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
        if reference.subset and not subset:
            raise typer.BadParameter(f"'{reference}' names a subset; write {reference.definition}")
        if reference.system and not system:
            raise typer.BadParameter(f"'{reference}' names a system; write {reference.definition}")
        return reference

    return parse


Complete = Callable[[str], list[str]]


def completer(known: Callable[[Registry, str], Iterable[str]]) -> Complete:
    """Return what a shell completes a word by: what a project knows that begins as the word does."""

    def complete(incomplete: str) -> list[str]:
        try:
            found = known(open_registry(), incomplete)
            return sorted({one for one in found if one.startswith(incomplete)})
        except CxrspecError:  # outside a project, or in a damaged one, there is nothing to complete
            return []

    return complete


def _definitions(registry: Registry, _: str) -> list[str]:
    return [str(one) for one in {*registry.authored(), *registry.frozen()}]


def _systems(registry: Registry, word: str) -> list[str]:
    """Return definitions, and once one is written out its systems."""
    if "/" not in word:
        return _definitions(registry, word)
    return [f"{one}/{name}" for one in registry.frozen() for name in registry.systems(one)]


def _subsets(registry: Registry, word: str) -> list[str]:
    """Return the frozen definitions, and once one is written out its subsets."""
    of = [one for one in registry.frozen() if word.startswith(f"{one}:")]
    if not of:
        return [f"{one}:" for one in registry.frozen()]
    return [f"{one}:{name}" for one in of for name in registry.read_lock(one).subsets]


def _benchmarks(registry: Registry, _: str) -> list[str]:
    return [one.benchmark for one in (*registry.authored(), *registry.frozen())]


def _boards(registry: Registry, word: str) -> list[str]:
    """Return the frozen benchmarks, and once one is written out its versions."""
    return [str(one) if "@" in word else one.benchmark for one in registry.frozen()]


parse_definition = reference_parser()
parse_scored = reference_parser(system=True)

complete_definition = completer(_definitions)
complete_scored = completer(_systems)
complete_subset = completer(_subsets)
complete_benchmark = completer(_benchmarks)
complete_board = completer(_boards)

DefinitionArgument = Annotated[
    Reference,
    typer.Argument(parser=parse_definition, metavar="BENCHMARK@VERSION", autocompletion=complete_definition),
]
ScoredArguments = Annotated[
    list[Reference] | None,
    typer.Argument(parser=parse_scored, metavar="BENCHMARK@VERSION[/SYSTEM]", autocompletion=complete_scored),
]
ScoredArgument = Annotated[
    Reference,
    typer.Argument(parser=parse_scored, metavar="BENCHMARK@VERSION/SYSTEM", autocompletion=complete_scored),
]
BoardArguments = Annotated[
    list[str] | None, typer.Argument(metavar="BENCHMARK|BENCHMARK@VERSION", autocompletion=complete_board)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
MirrorOption = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FOLDER", help="Folder of files called by their sha256, tried before the network; may be repeated."
    ),
]


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
        raise UsageError("Name definitions, or give --all.")
    return references or known()


def frozen_references(names: list[str] | None, registry: Registry) -> list[Reference]:
    """Return the frozen definitions of what was named, benchmarks or references; all of them without a name."""
    return named_references(names, registry.frozen(), kind="frozen benchmark")


def named_references(names: list[str] | None, known: list[Reference], *, kind: str = "benchmark") -> list[Reference]:
    """Return the definitions of what was named, benchmarks or references; all that are known without a name."""
    return list(dict.fromkeys(one for name in names for one in _named(name, known, kind))) if names else known


def _named(name: str, known: list[Reference], kind: str) -> list[Reference]:
    if "@" in name:
        return [parse_definition(name)]
    found = [one for one in known if one.benchmark == name]
    if not found:
        benchmarks = ", ".join(sorted({one.benchmark for one in known})) or "none"
        raise UsageError(f"No {kind} '{name}'; there are {benchmarks}.")
    return found


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


def leave(failed: bool) -> NoReturn:
    """End the command with exit code 1 if anything failed."""
    raise typer.Exit(int(failed))


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
