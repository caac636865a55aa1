"""Methods as people write them: what is understood, and what each mistake is answered with."""

from __future__ import annotations

from math import isfinite

import pytest

from dlag_node.errors import ConfigError
from dlag_node.graphs import Spectrum
from dlag_node.methods import METHODS, Method, Neighborhood, Worker, build_method, parse_method
from dlag_node.methods.flow import EVERYBODY_SPEAKS, Schedule
from dlag_node.methods.promise import LONGEST_PROMISE
from dlag_node.methods.worker import Everyone
from dlag_node.problems import LOGISTIC, Problem, rows_of
from dlag_node.wire.limits import MAX_PROMISE

PATH = Everyone(((0, 1), (1, 2)), (-0.25, -0.5), (0.05,) * 3, (0.3,) * 3, (0.3,) * 3, (2.6,) * 3)


def built(text: str, preset: str = "paper", everyone: Everyone | None = PATH) -> Method:
    problem = Problem(rows_of([[1.0, 2.0]]), rows_of([[1.0]]).matrix()[0], LOGISTIC, n0=4, lam=0.1)
    worker = Worker(
        node=0,
        problem=problem,
        hood=Neighborhood(0.5, {1: -0.5}),
        spectrum=Spectrum((1.0, 0.1, 0.0)),
        mu_min=problem.mu,
        L_max=problem.L,
        L_sample=problem.L_sample,
        seed=0,
        everyone=everyone,
    )
    return build_method(parse_method(text, preset), worker)


DLAG = (
    "D, c, constants, eta_beta, form, gamma, max_epochs, mu, passes, predict, promise, rule, s, "
    "solver, start, stop, tau, weights"
)
SSDA = "constants, eta_beta, form, max_epochs, passes, s, solver, start, stop, weights"
STOPS = r"expected epochs:N \(N >= 1\), relative:R \(0 < R < 1\) or exact:TOL \(TOL > 0\)"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("sgd", f"unknown method 'sgd': expected one of {', '.join(METHODS)}$"),
        ("DLAG", "unknown method 'DLAG'"),
        ("", "expected name or name:param=value"),
        ("dlag:", "expected name or name:param=value"),
        (":D=5", "expected name or name:param=value"),
        ("dlag:D", "'D' is not of the form param=value"),
        ("dlag:D=", "'D=' is not of the form param=value"),
        ("dlag:=5", "'=5' is not of the form param=value"),
        ("dlag:D=5,", "'' is not of the form param=value"),
        ("dlag:D=5,D=6", "D is given twice"),
        ("dlag:delay=5", f"dlag has no parameter 'delay': expected one of {DLAG}$"),
        ("dlag:K=4", f"dlag has no parameter 'K': expected one of {DLAG}$"),
        ("ssda:gamma=0", f"ssda has no parameter 'gamma': expected one of {SSDA}$"),
        ("msda:D=5", f"msda has no parameter 'D': expected one of K, {SSDA}$"),
        ("mdlag:k=4", "mdlag has no parameter 'k': expected one of D, K, c, "),
        ("dlag:gamma=small", "gamma = 'small': expected a number or 'theorem'"),
        ("dlag:s=1..5", "s = '1..5': expected a number$"),
        ("dlag:D=1.5", "D = '1.5': expected a whole number"),
        ("dlag:gamma=2", "gamma = 2.0: expected 0 <= gamma < 1, or 'theorem'"),
        ("dlag:gamma=1", "gamma = 1.0: expected 0 <= gamma < 1"),
        ("dlag:gamma=nan", "gamma = nan: expected 0 <= gamma < 1"),
        ("dlag:c=-1e-4", "c = -0.0001: expected 0 <= c < 1"),
        ("dlag:D=0", "D = 0: expected a whole number of at least 1"),
        ("dlag:D=-3", "D = -3: expected a whole number of at least 1"),
        ("mdlag:K=-1", r"K = -1: expected 0 \(by zeta\) or a whole number of at least 1"),
        ("mdlag:K=100", "K = 100: expected at most"),
        ("dlag:s=0.5", "s = 0.5: expected a number of at least 1"),
        ("dlag:s=inf", "s = inf: expected a number of at least 1"),
        ("dlag:eta_beta=0", "eta_beta = 0.0: expected a positive number"),
        ("dlag:eta_beta=inf", "eta_beta = inf: expected a positive number"),
        ("dlag:stop=foo", f"stop rule 'foo': {STOPS}"),
        ("dlag:stop=epochs:0", f"stop rule 'epochs:0': {STOPS}"),
        ("dlag:stop=relative:2", f"stop rule 'relative:2': {STOPS}"),
        (
            "dlag:solver=sgd",
            "solver = 'sgd': expected one of katyusha, svrg, agd, newton, chord, closed",
        ),
        ("dlag:solver=closed", "logistic has no closed-form dual gradient, ridge has"),
        ("dlag:max_epochs=0", "max_epochs = 0: expected at least 1"),
        ("dlag:passes=0", "passes = 0: expected a whole number of at least 1"),
        ("ssda:start=hot", "start = 'hot': expected one of cold, warm"),
        ("extra:alpha=1", "extra has no parameter 'alpha': expected one of alpha_L, sigma$"),
        ("extra:alpha_L=large", "alpha_L = 'large': expected a number or 'theorem'"),
        ("extra:alpha_L=0", "alpha_L = 0.0: expected a positive number"),
        ("extra:sigma=2", "sigma = 2.0: expected 0 < sigma < 2"),
        ("exact-diffusion:eta_beta=1", "exact-diffusion has no parameter 'eta_beta'"),
        ("exact-diffusion:alpha_L=-1", "alpha_L = -1.0: expected a positive number"),
        ("exact-diffusion:sigma=nan", "sigma = nan: expected 0 < sigma < 2"),
        ("diging:alpha_L=theorem", "alpha_L = 'theorem': expected a number$"),
        ("diging:sigma=0", "sigma = 0.0: expected 0 < sigma < 2"),
        ("admm:solver=newton", "admm has no parameter 'solver': expected one of c, tol$"),
        ("admm:c=-1", r"c = -1.0: expected a positive number, 0 \(by mu and L\) or 'balanced'"),
        ("admm:c=theorem", "c = theorem: expected a positive number, 0"),
        ("admm:tau=1", "admm has no parameter 'tau': expected one of c, tol$"),
        ("lazy-admm:tau=-1", r"tau = -1.0: expected 0 \(everything is told\) or above"),
        ("lazy-admm:tau=nan", "tau = nan: expected 0"),
        ("lazy-admm:D=0", "D = 0: expected a whole number of at least 1"),
        ("lazy-admm:predict=cubic", "predict = 'cubic': expected one of none, linear$"),
        ("lazy-admm:form=f16", "form = 'f16': expected one of f8, f4, f2, i1$"),
        ("lazy-exact-diffusion:local=0", "local = 0: expected a whole number of at least 1"),
        ("extra:alpha_L=balanced", "alpha_L = 'balanced': expected a positive number or 'theorem'"),
        ("dlag:rule=lazy", "rule = 'lazy': expected one of paper, steps$"),
        ("dlag:tau=0", "tau = 0.0: expected a positive number"),
        ("dlag:mu=max", "mu = 'max': expected one of min, own$"),
        ("dlag:weights=mine", "weights = 'mine': expected one of given, curvature$"),
        ("dlag:constants=loose", "constants = 'loose': expected one of paper, tight$"),
        ("dlag:predict=no", "predict = 'no': expected one of none, linear$"),
        ("dlag:form=int8", "form = 'int8': expected one of f8, f4, f2, i1$"),
        ("dlag:stop=certified:2", "stop=certified = 2.0: expected 0 <= stop=certified < 1"),
        ("dlag:stop=certified:x", "stop = 'certified:x': expected certified:c, 0 < c < 1"),
        ("dlag:gamma=balanced", "gamma = balanced: expected 0 <= gamma < 1, or 'theorem'"),
        ("dlag:promise=2.5", "promise = '2.5': expected a whole number or 'off'$"),
        ("dlag:promise=-1", r"promise = -1: expected 0 \(off\) to 100"),
        ("dlag:promise=101,D=200", r"promise = 101: expected 0 \(off\) to 100"),
        ("dlag:promise=3,D=2", "promise = 3: expected at most D = 2, the longest silence"),
        ("lazy-admm:promise=21", "promise = 21: expected at most D = 20, the longest silence"),
        ("dlag:D=off", "D = 'off': expected a whole number$"),
        ("ssda:promise=2", "ssda has no parameter 'promise'"),
        ("admm:promise=2", "admm has no parameter 'promise'"),
        ("admm:c=inf", "c = inf: expected a positive number"),
        ("admm:c=1e308", "a quadratic of weight inf: expected a number of at least 0"),
        ("admm:tol=0", "tol = 0.0: expected a positive number"),
        ("fgm:D=5", "fgm has no parameter 'D': expected one of eps, max_epochs, solver, start$"),
        ("fgm:eps=small", "eps = 'small': expected a number$"),
        ("fgm:eps=0", "eps = 0.0: expected a positive number"),
        ("fgm:start=hot", "start = 'hot': expected one of cold, warm"),
        ("fgm:solver=sgd", "unknown solver 'sgd': expected one of katyusha"),
        ("cola:eps=1", "cola has no parameter 'eps': expected one of epochs, gamma, solver$"),
        ("cola:gamma=2", "gamma = 2.0: expected 0 < gamma <= 1"),
        ("cola:epochs=0", "epochs = 0: expected a whole number of at least 1"),
        ("cola:epochs=1.5", "epochs = '1.5': expected a whole number"),
        ("dsba:alpha=1", "dsba has no parameter 'alpha': expected one of alpha_L$"),
        ("dsba:alpha_L=0", "alpha_L = 0.0: expected a positive number"),
        ("adfs:rho=1", "adfs has no parameter 'rho': expected one of edges, output$"),
        ("adfs:edges=0", "edges = 0: expected a whole number of at least 1"),
        ("adfs:output=x", "output = 'x': expected one of y, v"),
        (
            "tree:tau=1",
            "expected one of curvature, form, gap, memory, output$",
        ),
        ("tree:memory=0", "memory = 0: expected a whole number of at least 1"),
        ("auto", "unknown method 'auto': auto is called tree now; expected one of ssda, "),
        ("dlag:solver=auto", "solver = 'auto': auto is called best now; expected one of katyusha"),
        ("tree:memory=1.5", "memory = '1.5': expected a whole number"),
        ("tree:gap=-1", "gap = -1.0: expected a number of at least 0"),
        ("tree:gap=nan", "gap = nan: expected a number of at least 0"),
        ("tree:curvature=full", "curvature = 'full': expected one of shard, none"),
        ("tree:output=y", "output = 'y': expected one of taken, trial"),
        ("tree:form=i1", "form = 'i1': expected one of f8, f4; fewer digits would hide"),
        ("fgm:max_epochs=0", "max_epochs = 0: expected at least 1"),
    ],
)
def test_a_mistake_is_answered_with_what_was_expected(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        built(text)


@pytest.mark.parametrize("name", ["adfs", "tree"])
def test_a_method_without_the_whole_graph_that_it_needs_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} needs the whole graph, .* up to 1,000 nodes"):
        built(name, everyone=None)


def test_an_unknown_preset_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="preset 'foo': expected one of paper, theory"):
        parse_method("dlag", "foo")


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("preset", ["paper", "theory"])
def test_every_method_has_both_presets(name: str, preset: str) -> None:
    numbers = [
        each for each in built(name, preset).parameters.values() if not isinstance(each, str)
    ]
    assert numbers
    assert all(isfinite(each) and each >= 0 for each in numbers)


def test_what_is_given_goes_over_the_preset() -> None:
    parameters = built("mdlag:gamma=0.5,D=7,K=3,s=2,stop=relative:0.1", "theory").parameters
    assert [parameters[key] for key in ("gamma", "D", "K", "s")] == [0.5, 7, 3, 2.0]
    assert parameters["stop"] == "relative:0.1"
    assert parameters["c"] == built("mdlag:D=7,K=3", "theory").parameters["c"]


def test_a_spec_is_written_as_it_is_read() -> None:
    for text in ("ssda", "dlag:gamma=1e-4,D=10", "mdlag:stop=epochs:30,K=4"):
        assert str(parse_method(text)) == text
    assert str(parse_method("  dlag ")) == "dlag"


@pytest.mark.parametrize("name", ["dlag", "mdlag-all", "lazy-extra", "lazy-admm"])
def test_no_promises_is_the_number_0_or_the_word_off(name: str) -> None:
    assert built(f"{name}:promise=off").parameters == built(f"{name}:promise=0").parameters
    assert built(f"{name}:promise=2").parameters["promise"] == 2


def test_the_longest_promise_is_what_the_wire_takes() -> None:
    assert LONGEST_PROMISE == MAX_PROMISE


SCHEDULED = ("lazy-extra", "lazy-exact-diffusion", "lazy-admm", "tree", "adfs")


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        *((name, EVERYBODY_SPEAKS) for name in METHODS if name not in SCHEDULED),
        *((name, Schedule(2, lead=3, hop=3)) for name in SCHEDULED if name.startswith("lazy-")),
        ("dlag:promise=2", Schedule(longest=2, stride=1, lead=3, hop=3)),
        ("mdlag:K=3,promise=2", Schedule(longest=2, stride=3, lead=2, hop=1)),
        ("mdlag:K=1,promise=2", Schedule(longest=2, stride=1, lead=3, hop=3)),
        ("mdlag-all:K=3,promise=2", Schedule(longest=2, stride=3, lead=7, hop=3)),
        ("lazy-extra:promise=3", Schedule(longest=3, stride=1, lead=4, hop=4)),
        ("lazy-exact-diffusion:promise=1", Schedule(longest=1, stride=1, lead=2, hop=2)),
        ("lazy-admm:promise=2", Schedule(longest=2, stride=1, lead=3, hop=3)),
        ("lazy-admm:promise=2,tau=0", EVERYBODY_SPEAKS),
    ],
)
def test_a_method_says_who_speaks_when(text: str, schedule: Schedule) -> None:
    assert built(text).schedule == schedule
