"""Own the proof that comes before an export: a number whose chain is broken does not leave."""

from __future__ import annotations

from typing import Any

from cxrspec.audit import Audit, audit_definition, audit_system
from cxrspec.errors import Issue, RegistryError
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.report.board import PLACED
from cxrspec.report.leaderboard import public_leaderboard
from cxrspec.report_file import read_report


def checked_board(reference: Reference, registry: Registry) -> tuple[dict[str, Any], list[Issue]]:
    """Return the leaderboard of a definition, and what could not be checked of the numbers on it.

    Raises:
        RegistryError: if a link behind a number is broken, or as `leaderboard` does.
    """
    board = public_leaderboard(reference, registry)
    scored = [row["system"] for row in board["systems"] if row["state"] in PLACED]
    return board, _checked(reference, scored, registry)


def checked_report(
    reference: Reference, system: str, registry: Registry
) -> tuple[dict[str, Any], dict[str, Any], list[Issue]]:
    """Return the leaderboard, the report of one system on it, and what could not be checked.

    Raises:
        RegistryError: if the system has no number that may stand beside others, or a link behind it is broken.
    """
    board = public_leaderboard(reference, registry)
    row = next((one for one in board["systems"] if one["system"] == system), None)
    report = read_report(registry, reference, system)
    if row is None or row["state"] not in PLACED or report is None:
        message = row["reason"] if row and "reason" in row else "there is no submission"
        hint = f"Run 'cxrspec score {reference.definition}/{system}'"
        raise RegistryError(Issue("table-missing", f"{reference.definition}/{system}", message, hint))
    return board, report, _checked(reference, [system], registry)


def _checked(reference: Reference, systems: list[str], registry: Registry) -> list[Issue]:
    """Audit a definition and its systems: raise what is broken, return what could not be checked."""
    audits = [audit_definition(reference, registry), *(audit_system(reference, one, registry) for one in systems)]
    if broken := [issue for audit in audits for issue in _issues(audit, "broken", "audit-broken")]:
        raise RegistryError(broken)
    return [issue for audit in audits for issue in _issues(audit, "not checked", "note")]


def _issues(audit: Audit, state: str, code: str) -> list[Issue]:
    hint = f"Run 'cxrspec audit {audit.reference}'" if code != "note" else ""
    return [
        Issue(code, str(audit.reference), f"link '{link.name}' is {state}: {link.detail}", hint)
        for link in audit.links
        if link.state == state
    ]
