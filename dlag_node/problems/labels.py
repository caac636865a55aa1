"""Labels as files have them, mapped to the {-1, 1} of the logistic loss."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dlag_node.errors import ConfigError

_ACCEPTED = ((-1.0, 1.0), (0.0, 1.0), (1.0, 2.0))
_NAMED_AT_MOST = 6


def binary_labels(labels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Map labels {-1,1}, {0,1} or {1,2} to {-1,1}; the larger value becomes 1.

    Anything else, one class alone included, is a ConfigError that names the labels found.
    """
    found = np.unique(labels)
    for low, high in _ACCEPTED:
        if np.array_equal(found, (low, high)):
            return np.where(labels == high, 1.0, -1.0)
    named = ", ".join(f"{value:g}" for value in found[:_NAMED_AT_MOST])
    more = f" and {len(found) - _NAMED_AT_MOST} more" if len(found) > _NAMED_AT_MOST else ""
    raise ConfigError(
        f"labels found: {{{named}{more}}}; expected two classes, {{-1,1}}, {{0,1}} or {{1,2}} "
        "(for real-valued targets use the ridge problem)"
    )
