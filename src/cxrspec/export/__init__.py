"""Own what leaves for other programs: Croissant, hub metadata, tables. Files and text only; nothing is sent anywhere.

What is exported is proved first: tables by their digest, numbers by their audit.
"""

from cxrspec.export.croissant import croissant
from cxrspec.export.evidence import checked_board, checked_report
from cxrspec.export.hub import eval_results, model_card
from cxrspec.export.tables import csv_table, latex_table, markdown_table

__all__ = [
    "checked_board",
    "checked_report",
    "croissant",
    "csv_table",
    "eval_results",
    "latex_table",
    "markdown_table",
    "model_card",
]
