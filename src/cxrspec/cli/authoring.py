"""Own the commands of a maintainer: new, init, schema, diff, history, status."""

from __future__ import annotations

from typing import Annotated

import typer

from cxrspec.cli.application import (
    DefinitionArgument,
    JsonOption,
    app,
    complete_benchmark,
    complete_definition,
    leave,
    open_registry,
    parse_definition,
    print_json,
)
from cxrspec.reference import Reference


@app.command(epilog="Example: cxrspec new nih-cxr14-findings@adjudicated-pool-v1 adjudicated-pool-v2")
def new(
    reference: DefinitionArgument,
    version: Annotated[str, typer.Argument(metavar="NEW_VERSION")],
    change: Annotated[str | None, typer.Option(help="What differs, in one sentence.")] = None,
) -> None:
    """Start the next definition version from an existing one.

    Comments and order stay, and no source is opened.
    """
    from cxrspec.authoring import start_version
    from cxrspec.report import terminal

    registry = open_registry()
    started = start_version(reference, version, registry, change=change)
    terminal.say(f"wrote {registry.name(registry.spec_path(started))}; edit it, then run 'cxrspec freeze {started}'")


def _complete_task(incomplete: str) -> list[str]:
    from cxrspec.tasks import TASKS

    return sorted(name for name in TASKS if name.startswith(incomplete))


@app.command(epilog="Example: cxrspec init our-findings --task findings")
def init(
    benchmark: Annotated[str, typer.Argument(metavar="BENCHMARK")],
    task: Annotated[
        str,
        typer.Option(help="What is measured, as findings; an unknown one lists all.", autocompletion=_complete_task),
    ],
    version: Annotated[str, typer.Option("--definition-version", help="Name of its first version.")] = "v1",
) -> None:
    """Start a new benchmark from the commented template of a task.

    What only you know is left empty; 'cxrspec validate' names each of these fields.
    """
    from cxrspec.authoring import start_benchmark
    from cxrspec.report import terminal
    from cxrspec.schema import SCHEMA_PATH

    registry = open_registry()
    path = registry.name(registry.spec_path(start_benchmark(benchmark, version, task, registry)))
    terminal.say(f"wrote {path}; fill in what is empty, then run 'cxrspec validate {path}'")
    if not (registry.root / SCHEMA_PATH).is_file():
        terminal.note(f"an editor completes and checks it after 'cxrspec schema > {SCHEMA_PATH}'")


@app.command(epilog="Example: cxrspec schema > specs/definition.schema.json")
def schema() -> None:
    """Print the JSON Schema of a definition, for editors.

    It knows every field, form and range; 'cxrspec validate' also checks what the fields say of each other.
    """
    from cxrspec.schema import definition_schema

    print_json(definition_schema())


@app.command(epilog="Example: cxrspec diff nih-cxr14-findings@adjudicated-pool-v1 nih-cxr14-findings@official-v3")
def diff(
    before: Annotated[
        Reference, typer.Argument(parser=parse_definition, metavar="REF_A", autocompletion=complete_definition)
    ],
    after: Annotated[
        Reference, typer.Argument(parser=parse_definition, metavar="REF_B", autocompletion=complete_definition)
    ],
    items: Annotated[bool, typer.Option("--items", help="List the ids of items that differ.")] = False,
    restricted: Annotated[
        bool, typer.Option("--restricted", help="With --items: list ids of sources that may not be passed on.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Compare two definition versions: are their scores comparable?

    Frozen versions are compared item by item, others by what they say. REF_A is the earlier one for the bump.
    """
    from cxrspec.comparison import compare
    from cxrspec.report.versions import show_comparison

    found = compare(before, after, open_registry(), restricted=restricted or not items).as_json(with_ids=items)
    print_json(found) if as_json else show_comparison(found)


@app.command(epilog="Example: cxrspec history nih-cxr14-findings")
def history(
    benchmark: Annotated[str, typer.Argument(metavar="BENCHMARK", autocompletion=complete_benchmark)],
    as_json: JsonOption = False,
) -> None:
    """Draw the tree of a benchmark's definition versions.

    Each stands below the one that it supersedes, with the verdict on their scores, its subset ids and the commit that
    froze it.
    """
    from cxrspec.comparison.history import version_tree
    from cxrspec.report.versions import show_history

    roots = [root.as_json() for root in version_tree(benchmark, open_registry())]
    print_json(roots) if as_json else show_history(benchmark, roots)


@app.command(epilog="Example: cxrspec status --hash")
def status(
    hashing: Annotated[bool, typer.Option("--hash", help="Prove the frozen tables by their sha256 too.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show what waits for you, each with the command that mends it.

    Authored but not frozen, unscored, stale, altered, or out of reach. Exit code 1 if anything is faulty, altered or
    refused.
    """
    from cxrspec.report.versions import show_status
    from cxrspec.status import PROBLEMS, project_status

    waiting = project_status(open_registry(), hashing=hashing)
    rows = [one.as_json() for one in waiting]
    print_json(rows) if as_json else show_status(rows)
    leave(any(one.state in PROBLEMS for one in waiting))
