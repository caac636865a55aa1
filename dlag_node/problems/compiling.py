"""Kernels: loops that are interpreted while there is little to do, and then compiled.

A compiler costs 50 MiB and a third of a second to load, which a node with a small shard and a
method of few gradients never earns back. Interpreted or compiled, a kernel gives the same bits: the
same sums in the same order, nothing fused or reordered, and the same exp of the C library.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

import numpy as np

Function = TypeVar("Function", bound=Callable[..., object])

_AT_ONCE = 10_000  # entries of a shard: beyond, a single interpreted pass takes milliseconds
_IN_ALL = 1_000_000  # entries visited: by then interpreting has cost what loading a compiler does

_kernels: dict[Callable[..., object], Callable[..., object]] = {}  # as called, and as written
_visited = 0
_compiled = False


def kernel(function: Function) -> Function:
    """Mark a function as a kernel; it may call others, and no other function of ours."""

    @wraps(function)
    def interpreted(*args: object) -> object:
        with np.errstate(all="ignore"):  # as compiled code, which overflows in silence
            return function(*args)

    _kernels[interpreted] = function
    return interpreted  # type: ignore[return-value]


def visit(entries: int) -> None:
    """A kernel is about to pass over so many entries: should it be compiled?"""
    global _visited
    if not _compiled:
        _visited += entries
        if entries > _AT_ONCE or _visited > _IN_ALL:
            compile_kernels()


def compile_kernels() -> None:
    """Put compiled kernels in the place of interpreted ones, wherever modules hold them."""
    global _compiled
    if _compiled:
        return
    _compiled = True
    from numba import njit

    compiled = {shown: njit(cache=True, nogil=True)(own) for shown, own in _kernels.items()}
    for module in {own.__module__ for own in _kernels.values()}:
        names = vars(sys.modules[module])
        for name, value in list(names.items()):
            if callable(value) and value in compiled:
                names[name] = compiled[value]
