"""Own the fields of sources: where pinned bytes come from, and which of that can change a score; no I/O."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field

from cxrspec.fields import DESCRIPTIVE, CommitId, Fields, Sha256, ShortForm, Text


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
    files: Annotated[dict[FileName, PathRef], Field(min_length=1)]


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
