"""Kernels: loops that are interpreted while there is little to do, and then compiled.

A compiler costs 50 MiB and a third of a second to load, which a node with a small shard and a
method of few gradients never earns back. Interpreted or compiled, a kernel gives the same bits: the
same sums in the same order, nothing fused or reordered, and the same exp of the C library.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")

_AT_ONCE = 10_000  # entries of a shard: beyond, a single interpreted pass takes milliseconds
_IN_ALL = 1_000_000  # entries visited: by then interpreting has cost what loading a compiler does

_kernels: list[Kernel[..., Any]] = []
_visited = 0
_compiled = False


class Kernel(Generic[P, R]):
    """A function that runs interpreted or, once kernels are compiled, as compiled code.

    Compiled code that names a kernel gets its compiled form: numba asks an object that it does not
    know for its `_numba_type_`.
    """

    def __init__(self, function: Callable[P, R]) -> None:
        self.py_func = function
        self._run: Callable[P, R] = self._interpreted
        self._dispatcher: Any = None
        update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run it, in the form of the moment."""
        return self._run(*args, **kwargs)

    def _interpreted(self, *args: P.args, **kwargs: P.kwargs) -> R:
        with np.errstate(all="ignore"):  # as compiled code, which overflows in silence
            return self.py_func(*args, **kwargs)

    @property
    def dispatcher(self) -> Any:
        """The compiled form, which numba makes for each new combination of types."""
        if self._dispatcher is None:
            from numba import njit

            self._dispatcher = njit(cache=True, nogil=True)(self.py_func)
        return self._dispatcher

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_

    def compile(self) -> None:
        """Run as compiled code from now on."""
        self._run = self.dispatcher


def kernel(function: Callable[P, R]) -> Kernel[P, R]:
    """Mark a function as a kernel; it may call others, and no other function of ours."""
    made = Kernel(function)
    if _compiled:
        made.compile()
    _kernels.append(made)
    return made


def visit(entries: int) -> bool:
    """A kernel is about to pass over so many entries; whether it does so as compiled code."""
    global _visited
    if not _compiled:
        _visited += entries
        if entries > _AT_ONCE or _visited > _IN_ALL:
            compile_kernels()
    return _compiled


def compile_kernels() -> None:
    """Every kernel runs as compiled code from now on."""
    global _compiled
    if not _compiled:
        _compiled = True
        for each in _kernels:
            each.compile()
