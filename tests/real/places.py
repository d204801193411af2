"""Where the real-data tests find this project, the published files and the installed command."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"
COMMAND = Path(sys.executable).parent / "cxrspec"

Run = Callable[..., subprocess.CompletedProcess[str]]
