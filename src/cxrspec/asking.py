"""Own the asking: frozen cases and a table of templates become questions, whose answers a radiologist then writes.

It reads locks and frozen tables; the questions are another definition's source, once they are answered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from cxrspec.digest import Table, seed_hash_order
from cxrspec.errors import DefinitionError, Issue, RegistryError, SourceError, did_you_mean, listed
from cxrspec.field_errors import shown
from cxrspec.lock import Lock
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.selection import per_condition_choice
from cxrspec.spelling import plain_name
from cxrspec.submission import task_of
from cxrspec.tables import read_table
from cxrspec.tasks import CasesTask
from cxrspec.tasks.vqa.assignment import Question, assign_questions

HEADER: Final = ("study_id", "split", "condition", "question_type", "question", "answer")
TEMPLATE_COLUMNS: Final = ("condition", "question_type", "question")


def questions_to_answer(
    reference: Reference, templates: tuple[str, bytes], registry: Registry, *, restricted: bool = False
) -> bytes:
    """Return the questions about the cases of every subset as TSV, their answers blank.

    Args:
        reference: a frozen definition of the task `cases`, whose subsets are selected per condition.
        templates: name and bytes of a table with the columns condition, question_type and question; a blank condition
            means that the question may be asked of every case.
        registry: where the cases are.
        restricted: whether rows of sources that may not be passed on are wanted.

    Raises:
        RegistryError: if the definition is not frozen or none of cases, or its rows may not be passed on.
        SourceError: if the table of templates cannot be read.
        DefinitionError: if a template is of an unknown condition or cannot be a cell of the result, or if cases were
            chosen for a condition that no template asks about.
    """
    lock = registry.read_lock(reference)
    task = task_of(lock)
    if not isinstance(task, CasesTask):
        message = f"{lock.reference} has the task '{lock.definition['task']}'; questions are asked about 'cases'"
        raise RegistryError(Issue("frozen-unknown", str(lock.reference), message))
    if not (lock.redistribute or restricted):
        message, hint = "the cases come from a source that may not be passed on", "Add --restricted to see them"
        raise RegistryError(Issue("restricted", str(lock.reference), message, hint))
    asked = _read_templates(templates, task.column_names)
    lines, chosen = ["\t".join(HEADER)], Counter[str]()
    for name, subset in sorted(lock.definition["subsets"].items()):
        wanted = subset["select"].get("per_condition")
        if wanted is None:
            message = f"subset {name} is not selected per condition, so no case says what to ask"
            raise RegistryError(Issue("frozen-unknown", str(lock.reference), message))
        table = registry.read_table(lock.reference, name, lock.tables[name])
        chosen_for = _chosen_for(lock.definition["seed"], table, task, wanted)
        chosen.update(chosen_for)
        lines += _lines(lock, name, table, chosen_for, asked)
    if issues := list(_without_questions(templates[0], chosen, asked)):
        raise DefinitionError(issues)
    return ("\n".join(lines) + "\n").encode()


def _without_questions(where: str, chosen: Mapping[str, int], templates: Sequence[Question]) -> Iterator[Issue]:
    """Yield the conditions that cases were chosen for and that no template asks about, with how many cases."""
    for condition in sorted(chosen.keys() - {one.condition for one in templates}):
        message = f"no template of condition '{condition}', for which {chosen[condition]:,} cases were chosen"
        hint = "Write one per question type: every case is asked about what it was chosen for"
        yield Issue("value-unknown", where, message, hint)


def _lines(
    lock: Lock, name: str, table: Table, chosen_for: Sequence[str], templates: Sequence[Question]
) -> Iterator[str]:
    labels = {condition: table.column(condition) for condition in table.header[2:]}
    for row, condition in enumerate(chosen_for):
        case, of_case = table.item_ids[row], {one: column[row] for one, column in labels.items()}
        for question in assign_questions(case, of_case, condition, templates, lock.definition["seed"]):
            yield "\t".join((case, name, condition, question.question_type, question.text, ""))


def _chosen_for(seed: int, table: Table, task: CasesTask, wanted: Mapping[str, int]) -> list[str]:
    """Return the condition that each case of a frozen table was chosen for: choosing among them is the same choice."""
    order = seed_hash_order(seed, table.item_ids)
    strata = task.strata([table.column(name) for name in task.column_names])[order]
    columns: Any = per_condition_choice(strata, wanted, names=task.strata_names)
    named = {row: task.column_names[column] for row, column in zip(order, columns.tolist(), strict=True)}
    return [named[row] for row in range(len(table))]


def _read_templates(templates: tuple[str, bytes], conditions: Sequence[str]) -> list[Question]:
    name, data = templates
    table = read_table(data, name=name, columns=list(TEMPLATE_COLUMNS))
    known = {plain_name(condition): condition for condition in conditions} | {"": ""}
    found, issues = [], []
    for row, cells in enumerate(zip(*(table.columns[column] for column in TEMPLATE_COLUMNS), strict=True)):
        condition, question_type, text = (cell.strip() for cell in cells)
        where = f"{name}:{table.line_of(row)}"
        if plain_name(condition) not in known:
            message = f"unknown condition {shown(condition)}; the cases have {listed(conditions)}"
            issues.append(Issue("value-unknown", where, message, did_you_mean(condition, conditions)))
        elif not text or not question_type or any(mark in text + question_type for mark in "\t\n\r"):
            message = f"{shown(text)} of type {shown(question_type)} is no cell of a TSV table"
            issues.append(Issue("value-unknown", where, message, "Write both, in one line and without tabs"))
        else:
            found.append(Question(known[plain_name(condition)], question_type, text))
    if issues:
        raise DefinitionError(issues)
    if not found:
        raise SourceError(Issue("source-not-data", name, "no template in the table"))
    return found
