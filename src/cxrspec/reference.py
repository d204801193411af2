"""Own the reference: how a definition, a subset and a system's submission are named in files, commands and print."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_REFERENCE: Final = re.compile(
    r"(?P<benchmark>[a-z0-9]+(-[a-z0-9]+)*)@(?P<version>[a-z0-9]+([.-][a-z0-9]+)*)"
    r"(:(?P<subset>[a-z][a-z0-9]*(_[a-z0-9]+)*)|/(?P<system>[a-z0-9]+([._-][a-z0-9]+)*))?"
)


@dataclass(frozen=True, slots=True)
class Reference:
    """`benchmark@definition_version`, optionally with `:subset` or `/system`."""

    benchmark: str
    version: str
    subset: str | None = None
    system: str | None = None

    def __str__(self) -> str:
        tail = f":{self.subset}" if self.subset else f"/{self.system}" if self.system else ""
        return f"{self.benchmark}@{self.version}{tail}"

    @property
    def definition(self) -> Reference:
        """The same reference without subset or system."""
        return Reference(self.benchmark, self.version)

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Read a reference; raise ValueError saying the form that is allowed.

        >>> Reference.parse("nih-cxr14-findings@official-v3:test").subset
        'test'
        """
        found = _REFERENCE.fullmatch(text)
        if not found:
            raise ValueError(
                f"'{text}' is no reference; write benchmark@definition_version, "
                "optionally followed by :subset or /system"
            )
        return cls(found["benchmark"], found["version"], found["subset"], found["system"])
