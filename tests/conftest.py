"""Hypothesis searches anew at every run at home, and repeats itself where a change is judged."""

from __future__ import annotations

import os

from hypothesis import settings

# No deadline an example: the machine may be busy with something else.
settings.register_profile("search", deadline=None)
settings.register_profile("repeat", deadline=None, derandomize=True)
settings.load_profile("repeat" if os.environ.get("CI") else "search")
