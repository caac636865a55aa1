"""Optimisation methods, one a file, written from worker i's side."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from dlag_node.errors import ConfigError
from dlag_node.methods.flow import Array, Exchange, Flow, Inbox, Method, RoundReport
from dlag_node.methods.gossip import Neighborhood
from dlag_node.methods.spec import MethodSpec, parse_method
from dlag_node.methods.worker import Worker

Builder = Callable[[MethodSpec, Worker], Method]

# Where each method's builder is. A module is imported when its method is asked for: most of them
# bring the solvers along, and these a compiler, which a node that runs `tree` does without.
METHODS = {
    "ssda": "ssda.build",
    "msda": "msda.build",
    "dlag": "dlag.build",
    "mdlag": "mdlag.build",
    "mdlag-all": "mdlag_all.build",
    "extra": "extra.build",
    "exact-diffusion": "exact_diffusion.build",
    "diging": "diging.build",
    "admm": "admm.build",
    "lazy-extra": "extra.build_lazy",
    "lazy-exact-diffusion": "exact_diffusion.build_lazy",
    "lazy-admm": "admm.build_lazy",
    "fgm": "fgm.build",
    "cola": "cola.build",
    "dsba": "dsba.build",
    "adfs": "adfs.build",
    "tree": "tree.build",
}


def builder_of(name: str) -> Builder:
    """What builds the method of that name; an unknown name is a ConfigError listing all."""
    if name not in METHODS:
        renamed = "auto is called tree now; " if name == "auto" else ""
        raise ConfigError(f"unknown method {name!r}: {renamed}expected one of {', '.join(METHODS)}")
    module, function = METHODS[name].split(".")
    builder: Builder = getattr(import_module(f"{__name__}.{module}"), function)
    return builder


def build_method(spec: MethodSpec, worker: Worker) -> Method:
    """The method of that name for this worker."""
    return builder_of(spec.name)(spec, worker)


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
    "builder_of",
    "parse_method",
]
