"""A curve that grows while somebody looks at it, and takes a bounded place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_POINTS = 2_000


class Series:
    """Points (k, values), k ascending; the older half is thinned out when there are too many."""

    def __init__(self) -> None:
        self._points: list[list[Any]] = []

    def add(self, k: int, values: Sequence[float | None]) -> None:
        """A point behind the last one; what does not lie behind it is no news."""
        if self._points and k <= self._points[-1][0]:
            return
        self._points.append([k, *values])
        if len(self._points) > _POINTS:
            half = len(self._points) // 2
            self._points = self._points[:half:2] + self._points[half:]

    def after(self, k: int) -> list[list[Any]]:
        """The points behind k."""
        points = self._points
        first = len(points)
        while first and points[first - 1][0] > k:
            first -= 1
        return points[first:]
