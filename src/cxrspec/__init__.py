"""cxrspec: a declarative benchmark specification compiler and data-versioned registry for chest radiographs."""

import importlib

__version__ = "0.1.0"
__all__ = ["Definition", "Registry", "__version__"]


def __getattr__(name: str) -> object:
    """Load the interface for notebooks when it is first asked for, so that `import cxrspec` stays fast."""
    if name in ("Definition", "Registry"):
        return getattr(importlib.import_module("cxrspec.api"), name)
    raise AttributeError(f"module 'cxrspec' has no attribute '{name}'")
