"""Own the making of the site: which pages there are, what each is given, and their writing. All or nothing."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cxrspec import __version__
from cxrspec.audit import audit_definition, audit_system
from cxrspec.description import current_description
from cxrspec.errors import CxrspecError, Issue, RegistryError
from cxrspec.files import write_whole
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.report import board as boards
from cxrspec.report.leaderboard import public_leaderboard
from cxrspec.report.readers import of_readers
from cxrspec.report.site import content, scores
from cxrspec.report.site.charts import icon
from cxrspec.report.site.drafts import draft, is_readable
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
    """Write the pages of definitions, frozen or not, into a folder and return their places in it.

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


def shown_references(registry: Registry) -> list[Reference]:
    """Return every definition version that has a page: the frozen ones, and drafts that `validate` accepts."""
    frozen = registry.frozen()
    drafts = [one for one in registry.authored() if one not in frozen and is_readable(one, registry)]
    return sorted([*frozen, *drafts], key=str)


def site_pages(references: Sequence[Reference], registry: Registry, working: Working = silent) -> dict[str, str]:
    """Return the text of every page by its place below the site's folder.

    Raises:
        CxrspecError: with every issue of every definition that cannot be shown.
    """
    pages: dict[str, str] = {}
    issues: list[Issue] = []
    shown: dict[str, dict[str, Any]] = {}
    histories: dict[str, list[dict[str, Any]]] = {}
    frozen = registry.frozen()
    for reference in references:
        try:
            with working(f"drawing {reference}"):
                if reference.benchmark not in histories:
                    histories[reference.benchmark] = versions(reference.benchmark, registry)
                of_page = {
                    "reference": reference,
                    "history": histories[reference.benchmark],
                    "linked": {one.version for one in references if one.benchmark == reference.benchmark},
                }
                draw = _frozen_pages if reference in frozen else _draft_page
                for name, text, board in draw(reference, registry, of_page):
                    pages[name] = text
                    shown |= {str(reference): board} if board else {}
        except CxrspecError as error:
            issues += error.issues
    if issues:
        raise RegistryError(dict.fromkeys(issues))
    benchmarks = [{"name": name, "versions": found} for name, found in histories.items()]
    pages["index.html"] = _rendered("index.html", "index.html", benchmarks=benchmarks, boards=shown)
    return pages


def page_of(reference: Reference) -> str:
    """Return the place of the page of a definition or of a system."""
    folder = f"{reference.benchmark}/{reference.version}"
    return f"{folder}/systems/{reference.system}.html" if reference.system else f"{folder}/index.html"


Page = tuple[str, str, dict[str, Any] | None]
"""Place, text, and on the page of a definition what the overview says of it."""


def _draft_page(reference: Reference, registry: Registry, of_page: Mapping[str, Any]) -> Iterator[Page]:
    """Yield the page of a definition that is not frozen: all that it declares, and what it waits for."""
    given = draft(reference, registry)
    place = page_of(reference)
    about = _about(given["definition"], given["description"], {})
    yield place, _rendered("draft.html", place, **of_page, **{**given, **about}), given


def _about(definition: Mapping[str, Any], description: Mapping[str, Any], files: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page of any definition says; `files` is what its lock says of each source's files."""
    return {
        "definition": definition,
        "description": description,
        "names": content.names(definition),
        "items_text": content.items_text(definition),
        "rules": content.rules(definition),
        "protocols": content.protocols(definition),
        "metrics": content.metric_rows(definition),
        "sources": content.sources(definition, description, files),
    }


def _frozen_pages(reference: Reference, registry: Registry, of_page: Mapping[str, Any]) -> Iterator[Page]:
    """Yield the page of a frozen definition with its leaderboard, and the page of each system that has numbers."""
    lock = registry.read_lock(reference)
    board = public_leaderboard(reference, registry)
    place = page_of(reference)
    common = {"lock": lock, "board": board, "restricted": not lock.redistribute}
    yield (
        place,
        _rendered(
            "definition.html",
            place,
            **of_page,
            **common,
            **_about(lock.definition, current_description(lock, registry), lock.document["sources"]),
            subsets=content.subsets(lock),
            boards=list(scores.board_protocols(board)),
            graded=list(boards.graded_rows(board)),
            agreement=list(boards.agreement_texts(board)),
            unranked=[row for row in board["systems"] if row["state"] not in boards.PLACED or not row["scores"]],
            chain=chain(audit_definition(reference, registry), restricted=not lock.redistribute),
        ),
        {**board, "leaders": list(scores.leaders(board))},
    )
    for row in board["systems"]:
        if row["state"] in boards.PLACED:
            system = Reference(reference.benchmark, reference.version, system=row["system"])
            yield page_of(system), _system_page(system, row, registry, {"reference": reference, **common}), None


def _system_page(system: Reference, row: Mapping[str, Any], registry: Registry, common: Mapping[str, Any]) -> str:
    lock, name = common["lock"], row["system"]
    report = read_report(registry, lock.reference, name) or {}
    submission = load_submission(registry, lock.reference, name)
    return _rendered(
        "system.html",
        page_of(system),
        **common,
        system=name,
        rank=boards.rank_text(row),
        reason=row["reason"],
        report=report,
        notes=report["notes"] if lock.redistribute else [],
        forests=scores.score_forests(report["scores"]),
        graded=scores.score_forests(report.get("graded", ())),
        agreement=boards.agreement_text(report["agreement"]) if report.get("agreement") else "",
        readers=scores.reader_tables(report["scores"]),
        reader_signatures=[(one["metric"], one["signature"]) for one in of_readers(report["scores"])],
        strata=scores.strata_forests(report),
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
    from markupsafe import Markup, escape

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
        "panel_values": scores.panel_values,
    }
    environment.filters["count"] = lambda number: f"{number:,}"
    environment.filters["breakable"] = lambda name: Markup("_<wbr>").join(escape(part) for part in name.split("_"))
    environment.filters["plain"] = lambda name: name.removeprefix("n_").replace("_", " ")
    return environment
