"""Tiny data made in code, the same on every machine: no network, no randomness."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cxrspec.compiler import Compiled, compile_definition
from cxrspec.loader import load_definition
from cxrspec.reference import Reference
from cxrspec.registry import Registry
from cxrspec.sources import Store
from cxrspec.strict_yaml import dump_document
from server import Server
from tiny import TINY, CompileTiny, Define, tiny_tables


@pytest.fixture
def tiny_document() -> dict[str, Any]:
    """A fresh copy of a definition that the tiny project compiles; change it as you like."""
    return copy.deepcopy(TINY)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The folder of a project: `specs/` and `registry/` empty, `data/` with labels, lists and predictions."""
    root = tmp_path / "project"
    for folder in ("specs", "registry", "data"):
        (root / folder).mkdir(parents=True)
    for name, text in tiny_tables().items():
        (root / "data" / name).write_text(text, encoding="utf-8", newline="")
    return root


@pytest.fixture
def store(project: Path, tmp_path: Path) -> Store:
    """A store with a cache of its own that never reaches for the network."""
    return Store(cache=tmp_path / "cache", root=project, offline=True)


@pytest.fixture
def define(project: Path) -> Define:
    """Write a definition, given as a mapping or as YAML text, where it belongs; return its registry and reference."""

    def write(definition: Mapping[str, Any] | str) -> tuple[Registry, Reference]:
        text = definition if isinstance(definition, str) else dump_document(definition).decode()
        said = dict(
            line.split(": ", 1) for line in text.splitlines() if line.startswith(("benchmark: ", "definition_"))
        )
        registry = Registry(project)
        reference = Reference(said["benchmark"], said["definition_version"])
        path = registry.spec_path(reference)
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return registry, reference

    return write


@pytest.fixture
def compile_tiny(define: Define, store: Store) -> CompileTiny:
    """Write a definition, load it and compile it with the tiny project's data as it is now."""

    def run(definition: Mapping[str, Any] | str) -> Compiled:
        registry, reference = define(definition)
        return compile_definition(load_definition(registry.spec_path(reference)), store)

    return run


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server on this machine, asked without a proxy."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Server() as running:
        yield running


@pytest.fixture
def hub(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    """The server as a hub, asked by nobody's account."""
    from huggingface_hub import close_session

    monkeypatch.setenv("HF_ENDPOINT", server.url + "/")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "no-token"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_TELEMETRY", True)
    yield server
    close_session()


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Name bytes after their argument: packed bytes hold the time, and parallel workers must agree on names."""
    return argname if isinstance(val, bytes) else None
