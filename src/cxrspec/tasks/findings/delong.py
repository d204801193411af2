"""Own DeLong's interval as a field of a metric: of one finding's ROC-AUC, without resampling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from cxrspec.fields import Fields, OpenShare

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

OF_ONE_FINDING: Final = "DeLong's interval is of one finding, not of a mean"


class DeLongInterval(Fields):
    """DeLong's interval of a ROC-AUC, symmetric on the logit scale; items count as independent of each other."""

    method: Literal["delong"]
    level: OpenShare

    def entry(
        self, labels: NDArray[np.int8] | None, scores: NDArray[np.float64] | None, reason: str | None
    ) -> dict[str, Any]:
        """Return the interval as a report holds it, from labels and scores [n]; null for `reason` without them."""
        from cxrspec.metrics import delong_interval

        low = high = None
        if labels is not None and scores is not None:
            found = delong_interval(labels, scores, self.level)
            low, high, reason = found.low, found.high, found.reason or None
        return {
            "method": self.method,
            "scale": "logit",
            "level": self.level,
            "low": low,
            "high": high,
            "reason": reason,
        }
