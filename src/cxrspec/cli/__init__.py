"""The command line: parse, call one library function, render, exit. No command computes anything itself.

Exit codes: 0 fine, 1 problems (on stderr), 2 wrong usage. Results go to stdout.
"""

from cxrspec.cli import authoring, definitions, discovery, exports, grading, results, submissions
from cxrspec.cli.application import app, main

__all__ = ["app", "authoring", "definitions", "discovery", "exports", "grading", "main", "results", "submissions"]
