"""Own what the command line shows of definition versions: a comparison, a benchmark's history, what waits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from rich.text import Text
from rich.tree import Tree

from cxrspec.report.terminal import add_row, harmless, new_table, out, say

VERDICT_STYLES: Final = {
    "scores comparable": "green",
    "comparable on the shared items only": "yellow",
    "not comparable": "bold red",
    "the same": "green",
    "no score to compare": "yellow",
}
STATE_STYLES: Final = {"frozen": "green", "authored": "yellow", "faulty": "bold red", "absent": "dim"}
PENDING_STYLES: Final = {"faulty": "bold red", "altered": "bold red", "refused": "bold red"}
SHOWN_CHARACTERS: Final = 60


def show_comparison(found: Mapping[str, Any]) -> None:
    """Print a comparison: what differs, the subsets, the verdict with its reasons, and the bump."""
    say(f"{found['before']} -> {found['after']}", "bold")
    _show_changes(found)
    _show_subsets(found["subsets"])
    _show_prevalence(found["subsets"])
    _show_verdict("verdict", found)
    say(f"smallest honest bump: {found['bump']['bump']}")
    for reason in found["bump"]["why"]:
        say(f"  {reason}")


def show_pairs(pairs: Iterable[Mapping[str, Any]]) -> None:
    """Print for every two versions whether their scores are comparable."""
    for pair in pairs:
        _show_verdict(f"{pair['before']} and {pair['after'].partition('@')[2]}", pair)


def _show_verdict(title: str, found: Mapping[str, Any]) -> None:
    verdict = found["verdict"]["verdict"]
    out().print(Text.assemble(f"{title}: ", (verdict, VERDICT_STYLES[verdict])))
    for one, reason, names in _reasons(found["metrics"]):
        say(f"  {', '.join(names)}: {one}: {reason}")
    if not found["metrics"]:
        say(f"  {'; '.join(found['verdict']['why'])}")


def _show_changes(found: Mapping[str, Any]) -> None:
    if found["changes"]:
        table = new_table("what differs", "before", "after")
        for change in found["changes"]:
            add_row(table, change["path"], _value_text(change["before"]), _value_text(change["after"]))
        out().print(table)
    if found["described"]:
        names = dict.fromkeys(change["path"].partition(".")[0] for change in found["described"])
        say(f"described otherwise, without effect on any score: {', '.join(names)}")
    if not found["changes"] and not found["described"]:
        say("nothing differs")


def _value_text(value: Any) -> str:
    if value is None:
        return "-"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"


def _show_subsets(subsets: Mapping[str, Any]) -> None:
    table = new_table("subset", "before", "after", "added", "removed", "relabelled", "groups")
    for name, one in subsets.items():
        counts = [
            f"{one['items'][key]['count']:,}" if one["items"] else "" for key in ("added", "removed", "relabelled")
        ]
        groups = f"+{one['groups']['added']:,} -{one['groups']['removed']:,}" if one["groups"] else ""
        sides = [_side_text(one[side]) for side in ("before", "after")]
        add_row(table, name, *sides, *(["the same"] if one["same"] else counts[:1]), *counts[1:], groups)
    out().print(table)
    for name, one in subsets.items():
        if one["not_compared"]:
            say(f"  items of {name} were not compared: {one['not_compared']}", "yellow")
        for kind in ("added", "removed", "relabelled"):
            if one["items"] and one["items"][kind].get("ids"):
                say(f"{name} {kind}, sha256 {one['items'][kind]['sha256']}:")
                for item in one["items"][kind]["ids"]:
                    say(f"  {item}")


def _side_text(side: Mapping[str, Any] | None) -> str:
    return f"{side['id']} {side['items']:,} items of {side['groups']:,} groups" if side else "-"


def _show_prevalence(subsets: Mapping[str, Any]) -> None:
    rows = [
        (subset, finding, *(_share_text(sides[side]) for side in ("before", "after")))
        for subset, one in subsets.items()
        for finding, sides in one["prevalence"].items()
        if sides["before"] != sides["after"] and one["before"] and one["after"]
    ]
    if rows:
        table = new_table("prevalence in", "", "before", "after")
        for row in rows:
            add_row(table, *row)
        out().print(table)


def _share_text(counts: Sequence[int] | None) -> str:
    return f"{counts[0]:,} of {counts[1]:,} ({counts[0] / counts[1]:.1%})" if counts else "-"


def _reasons(metrics: Mapping[str, Any]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield each verdict and reason with the metrics that share it."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for name, one in metrics.items():
        grouped.setdefault((one["verdict"], "; ".join(one["why"])), []).append(name)
    yield from ((*key, names) for key, names in grouped.items())


def show_history(benchmark: str, roots: Iterable[Mapping[str, Any]]) -> None:
    """Print the tree of versions, each below the one that it supersedes."""
    tree = Tree(Text(harmless(benchmark), "bold"))
    for root in roots:
        _grow(tree, root)
    out().print(tree)


def _grow(tree: Tree, node: Mapping[str, Any]) -> None:
    version = node["reference"].partition("@")[2]
    line = Text.assemble((version, "bold"), "  ", (node["state"], STATE_STYLES[node["state"]]))
    if node["commit"]:
        line.append(f" by commit {node['commit'][:12]}")
    if node["subsets"]:
        line.append(f"\n{', '.join(f'{name} {digest}' for name, digest in node['subsets'].items())}", "dim")
    if node["change"]:
        line.append(f"\n{harmless(node['change'])}")
    if node["verdict"]:
        verdict = node["verdict"]["verdict"]
        line.append("\n")
        line.append(verdict, VERDICT_STYLES[verdict])
        line.append(f" with {node['supersedes']} ({node['bump']} bump)")
    branch = tree.add(line)
    for child in node["superseded_by"]:
        _grow(branch, child)


def show_status(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print what waits, one thing a line, with the command that mends it under it."""
    for row in rows:
        style = PENDING_STYLES.get(row["state"], "yellow")
        out().print(Text.assemble((row["state"], style), f"  {row['reference']}  {harmless(row['detail'])}"))
        say(f"    {row['command']}", "dim")
    if not rows:
        say("nothing waits: all definitions are frozen, all submissions scored", "green")
