"""The real wheel that the NIH definitions are made of, through the user's own pip."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from cxrspec.definition import WheelSource
from cxrspec.errors import SourceError
from cxrspec.sources import OpenedFile, Store, open_file

pytestmark = pytest.mark.real

WHEEL = "95f6c3475661f3515d4258deb0855bd5d1b1a56e0b65384251d3dd3fa61fac41"
MEMBER = "torchxrayvision/data/google2019_nih-chest-xray-labels.csv.gz"


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> OpenedFile:
    """The adjudicated labels of Majkowska et al. 2020, out of torchxrayvision 1.5.7."""
    source = WheelSource(
        kind="wheel",
        package="torchxrayvision",
        version="1.5.7",
        sha256=WHEEL,
        files={"adjudicated": MEMBER},
        licence="Apache-2.0",
        attribution="Cohen et al., TorchXRayVision",
    )
    try:
        return open_file(source, "adjudicated", Store(Path(tmp_path_factory.mktemp("cache"))), source_name="labels")
    except SourceError as error:
        if error.issues[0].code != "source-unreachable":
            raise
        pytest.skip(f"no package index with torchxrayvision 1.5.7 is reachable: {error}")


def test_wheel_is_the_pinned_one(opened: OpenedFile) -> None:
    """The wheel on the package index is the one that the definitions pin."""
    assert opened.pin == {"wheel_sha256": WHEEL, "path": MEMBER}
    assert opened.sha256 == "1d1b846e463753ed0219f67e21b10c8aef381897dbd64865c8191aa5794e8048"


def test_labels_have_the_published_number_of_images(opened: OpenedFile) -> None:
    """The adjudicated file has the 4,376 images of the publication."""
    assert len(gzip.decompress(opened.read()).decode().splitlines()) - 1 == 4376
