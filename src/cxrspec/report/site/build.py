"""Own the making of the site: which pages there are, what each is given, and their writing. All or nothing."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cxrspec import __version__
from cxrspec.audit import audit_definition, audit_system
from cxrspec.description import current_description
from cxrspec.errors import CxrspecError, Issue, RegistryError
from cxrspec.files import write_whole
from cxrspec.lock import Lock
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.report import board as boards
from cxrspec.report.leaderboard import public_leaderboard
from cxrspec.report.site import content
from cxrspec.report.site.charts import icon
from cxrspec.report.site.evidence import chain, curves
from cxrspec.report.site.history import versions
from cxrspec.report_file import read_report
from cxrspec.submission import load_submission

if TYPE_CHECKING:
    from jinja2 import Environment

GENERATOR: Final = f'<meta name="generator" content="cxrspec {__version__}">'
"""Every page says who made it; a file in its place that does not is somebody else's."""
MARK: Final = b'<meta name="generator" content="cxrspec '

Working = Callable[[str], AbstractContextManager[None]]


@contextmanager
def silent(what: str) -> Iterator[None]:
    """Say nothing of what is being done."""
    yield


def write_site(references: Sequence[Reference], registry: Registry, out: Path, working: Working = silent) -> list[str]:
    """Write the pages of frozen definitions into a folder and return their places in it.

    Other files of the folder are left alone. The same registry gives the same bytes.

    Raises:
        CxrspecError: with every issue of every definition that cannot be shown, or with every file of somebody
            else's that stands where a page belongs; nothing is written then.
    """
    pages = site_pages(references, registry, working)
    strange = [name for name in pages if _is_strange(out / name)]
    if strange:
        message = "exists, and cxrspec did not write it"
        raise RegistryError([Issue("disk", name, message, "Choose another folder with --out") for name in strange])
    for name, text in pages.items():
        write_whole(out / name, text.encode())
    return list(pages)


def _is_strange(path: Path) -> bool:
    return path.exists() and not (path.is_file() and MARK in path.read_bytes()[:2000])


def site_pages(references: Sequence[Reference], registry: Registry, working: Working = silent) -> dict[str, str]:
    """Return the text of every page by its place below the site's folder.

    Raises:
        CxrspecError: with every issue of every definition that cannot be shown.
    """
    pages: dict[str, str] = {}
    issues: list[Issue] = []
    shown: list[dict[str, Any]] = []
    for reference in references:
        try:
            with working(f"drawing {reference}"):
                for name, text, board in _definition_pages(reference, registry, references):
                    pages[name] = text
                    shown += [board] if board else []
        except CxrspecError as error:
            issues += error.issues
    if issues:
        raise RegistryError(issues)
    benchmarks = [
        {"name": name, "versions": versions(name, registry)} for name in dict.fromkeys(r.benchmark for r in references)
    ]
    by_reference = {board["reference"]: board for board in shown}
    pages["index.html"] = _rendered("index.html", "index.html", benchmarks=benchmarks, boards=by_reference)
    return pages


def page_of(reference: Reference) -> str:
    """Return the place of the page of a definition or of a system."""
    folder = f"{reference.benchmark}/{reference.version}"
    return f"{folder}/systems/{reference.system}.html" if reference.system else f"{folder}/index.html"


def _definition_pages(
    reference: Reference, registry: Registry, references: Sequence[Reference]
) -> Iterator[tuple[str, str, dict[str, Any] | None]]:
    """Yield (place, text, leaderboard) of a definition's page, and (place, text, None) of the page of each system."""
    lock = registry.read_lock(reference)
    board = public_leaderboard(reference, registry)
    place = page_of(reference)
    common = {"reference": reference, "lock": lock, "board": board, "restricted": not lock.redistribute}
    yield (
        place,
        _rendered(
            "definition.html",
            place,
            **common,
            definition=lock.definition,
            description=current_description(lock, registry),
            subsets=content.subsets(lock),
            protocols=content.protocols(lock),
            metrics=content.metric_rows(lock),
            sources=content.sources(lock),
            boards=list(content.board_forests(board)),
            unranked=[row for row in board["systems"] if row["state"] not in boards.PLACED],
            history=versions(reference.benchmark, registry),
            linked={one.version for one in references if one.benchmark == reference.benchmark},
            chain=chain(audit_definition(reference, registry), restricted=not lock.redistribute),
        ),
        board,
    )
    for row in board["systems"]:
        if row["state"] in boards.PLACED:
            system = Reference(reference.benchmark, reference.version, system=row["system"])
            yield page_of(system), _system_page(system, lock, registry, common), None


def _system_page(system: Reference, lock: Lock, registry: Registry, common: dict[str, Any]) -> str:
    name = str(system.system)
    report = read_report(registry, lock.reference, name) or {}
    submission = load_submission(registry, lock.reference, name)
    return _rendered(
        "system.html",
        page_of(system),
        **common,
        system=name,
        report=report,
        notes=report["notes"] if lock.redistribute else [],
        forests=content.score_forests(report),
        strata=content.strata_forests(report),
        curves=curves(submission, lock, registry),
        chain=chain(audit_system(lock.reference, name, registry), restricted=not lock.redistribute),
    )


def _rendered(template: str, place: str, **given: Any) -> str:
    folder = posixpath.dirname(place)

    def link(target: str | Reference) -> str:
        return posixpath.relpath(page_of(target) if isinstance(target, Reference) else target, folder or ".")

    return _environment().get_template(template).render(link=link, **given)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("cxrspec.report.site"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    style = environment.loader.get_source(environment, "style.css")[0]  # type: ignore[union-attr]
    environment.globals |= {
        "overlap": boards.overlap_text,
        "style": Markup(style),  # noqa: S704 - our own file
        "generator": Markup(GENERATOR),  # noqa: S704 - our own text
        "cxrspec_version": __version__,
        "icon": icon,
        "Reference": Reference,
        "reported_text": boards.reported_text,
        "leaders": leaders,
        "panel_values": content.panel_values,
    }
    environment.filters["count"] = lambda number: f"{number:,}"
    environment.filters["plain"] = lambda name: name.removeprefix("n_").replace("_", " ")
    return environment


def leaders(board: dict[str, Any]) -> list[dict[str, Any]]:
    """Return, per protocol, the system that leads by the first number, with that number."""
    found = []
    for protocol in boards.protocols(board):
        if ranked := boards.ranked(board, protocol):
            name = boards.metric_names(board, protocol)[0]
            text = boards.interval_text(ranked[0]["scores"][name])
            found.append({"protocol": protocol, "system": ranked[0]["system"], "metric": name, "text": text})
    return found
