"""Own the bootstrap interval that a metric of any task may ask for, and how a report holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from cxrspec.fields import Fields, OpenShare, Share

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_LEFT_OUT: Final = 0.01
"""Largest share of undefined resamples where a definition states none; it never changes."""


class Interval(Fields):
    """A percentile bootstrap interval over the units of the test subset; nothing is refitted."""

    method: Literal["bootstrap"]
    unit: Literal["item", "group"]
    resamples: Annotated[int, Field(ge=100, le=1_000_000)]
    level: OpenShare
    max_left_out: Share | None = None
    """Largest share of resamples that may be undefined before the interval is null; 0.01 where absent."""

    def entry(self, values: NDArray[np.float64] | None, reason: str | None) -> dict[str, Any]:
        """Return the interval as a report holds it, from resampled values [R]; null for `reason` without any."""
        from cxrspec.metrics import Interval as Found
        from cxrspec.metrics import percentile_interval

        found = Found(None, None, self.resamples, self.resamples, reason or "")
        if values is not None:
            allowed = MAX_LEFT_OUT if self.max_left_out is None else self.max_left_out
            found = percentile_interval(values, self.level, allowed)
        return {
            "method": self.method,
            "unit": self.unit,
            "level": self.level,
            "resamples": self.resamples,
            "n_left_out": found.n_left_out,
            "low": found.low,
            "high": found.high,
            "reason": found.reason or None,
        }
