"""Optimisation methods, one a file, written from worker i's side."""

from __future__ import annotations

from collections.abc import Callable

from dlag_node.errors import ConfigError
from dlag_node.methods import (
    adfs,
    admm,
    cola,
    diging,
    dlag,
    dsba,
    exact_diffusion,
    extra,
    fgm,
    mdlag,
    mdlag_all,
    msda,
    ssda,
    tree,
)
from dlag_node.methods.flow import Array, Exchange, Flow, Inbox, Method, RoundReport
from dlag_node.methods.gossip import Neighborhood
from dlag_node.methods.spec import MethodSpec, parse_method
from dlag_node.methods.worker import Worker

METHODS: dict[str, Callable[[MethodSpec, Worker], Method]] = {
    "ssda": ssda.build,
    "msda": msda.build,
    "dlag": dlag.build,
    "mdlag": mdlag.build,
    "mdlag-all": mdlag_all.build,
    "extra": extra.build,
    "exact-diffusion": exact_diffusion.build,
    "diging": diging.build,
    "admm": admm.build,
    "lazy-extra": extra.build_lazy,
    "lazy-exact-diffusion": exact_diffusion.build_lazy,
    "lazy-admm": admm.build_lazy,
    "fgm": fgm.build,
    "cola": cola.build,
    "dsba": dsba.build,
    "adfs": adfs.build,
    "tree": tree.build,
    "auto": tree.build,
}


def build_method(spec: MethodSpec, worker: Worker) -> Method:
    """The method of that name for this worker; an unknown name is a ConfigError listing all."""
    if spec.name not in METHODS:
        raise ConfigError(f"unknown method {spec.name!r}: expected one of {', '.join(METHODS)}")
    return METHODS[spec.name](spec, worker)


__all__ = [
    "METHODS",
    "Array",
    "Exchange",
    "Flow",
    "Inbox",
    "Method",
    "MethodSpec",
    "Neighborhood",
    "RoundReport",
    "Worker",
    "build_method",
    "parse_method",
]
