"""Own how a definition declares what a probe makes of uncertain training labels: one policy, or one per finding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from cxrspec.choices import POLICIES, Policy
from cxrspec.errors import Issue, listed
from cxrspec.field_errors import mapping_at
from cxrspec.fields import FieldIssue, ShortForm
from cxrspec.tasks.named import FindingName

UncertainPolicies = Annotated[
    dict[FindingName, Policy],
    ShortForm(lambda value: value, "a policy nor a mapping of finding to policy", words=POLICIES),
    Field(min_length=1),
]


def expand_policy(document: Any) -> Any:
    """Return a raw document of the task in which one policy is written out for every finding."""
    protocols, findings = mapping_at(document, "protocols"), mapping_at(document, "findings")
    probe = mapping_at(protocols, "probe")
    if probe.get("uncertain") not in POLICIES or not findings:
        return document
    every = dict.fromkeys(findings, probe["uncertain"])
    return {**document, "protocols": {**protocols, "probe": {**probe, "uncertain": every}}}


def check_policies(document: Mapping[str, Any], findings: Sequence[str]) -> Iterator[FieldIssue]:
    """Yield every finding that a mapping of policies leaves out."""
    policies = mapping_at(mapping_at(mapping_at(document, "protocols"), "probe"), "uncertain")
    for name in findings if policies else ():
        if name not in policies:
            path = ("protocols", "probe", "uncertain", name)
            message = f"this finding has no policy, and others have; allowed are {listed(POLICIES)}"
            yield FieldIssue(path, "field-missing", message, "Name a policy for each, or write one for all")


def policy_notes(policies: Mapping[str, Policy]) -> list[Issue]:
    """Return the note that one policy holds for every finding."""
    if len(set(policies.values())) > 1:
        return []
    one = next(iter(policies.values()))
    message = f"{one} holds for every finding: {listed(sorted(policies))}"
    return [Issue("note", "protocols.probe.uncertain", message)]
