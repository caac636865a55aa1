"""Worker i's lazy conditions: when the neighbors may keep what they already have."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import chain, islice, repeat
from math import inf


# Not frozen, like everything that is made for each exchange.
@dataclass(slots=True)
class Decision:
    """What was decided for one exchange: tell the neighbors, or stay silent.

    Silence that was promised and that the lazy condition does not allow is `overdue`. `gap` and
    `bound` are the condition's two sides, the left one 0 where everything is told.
    """

    send: bool
    overdue: bool = False
    gap: float = field(default=0.0, compare=False)
    bound: float = field(default=0.0, compare=False)


SEND, SKIP, OVERDUE = Decision(send=True), Decision(send=False), Decision(send=False, overdue=True)


class LazyRule:
    """The paper's lazy condition, with O(D) memory.

    At iteration k worker i stays silent while its age is below D and

        ||theta_hat^{k-1} - theta^k||^2 <=
            3 / mu^2 * ( G_{k-D} + G_k + (c + gamma) * sum_{j=k-D}^{k-1} s_j )

    with mu = mu_min, s_j = ||x^j - x^{j+1}||^2 and G_k = sum_{j<k} c^{k-j} s_j, which is
    c (G_{k-1} + s_{k-1}). `_window` holds the last D of the s_j, `_recent` is G_k and `_older` is
    G_{k-D}: a step that leaves the window enters the older sum. For a vector that is larger than
    theta by a known factor the right-hand side is multiplied by `scale`, that factor's square.
    """

    STATE = ("age", "_window", "_recent", "_older")

    FADING = 0.9  # in an exchange, of the second differences that a promise reckons with
    strict = False  # it has no alarms

    def __init__(self, *, gamma: float, c: float, D: int, mu: float, scale: float = 1.0) -> None:
        self.gamma = gamma
        self.c = c
        self.D = D
        self.mu = mu
        self.age = 0  # d_i^k
        self._scale = scale * 3.0 / mu**2
        self._window: deque[float] = deque()
        self._recent = 0.0
        self._older = 0.0

    def __str__(self) -> str:
        return f"gamma = {self.gamma:g}, c = {self.c:g}, D = {self.D}"

    def bound(self, ahead: int = 0) -> float:
        """Right-hand side of the lazy condition, or what it will be at least `ahead` iterations on.

        The steps until then are not known yet: each is taken as 0, and they can only add to it.
        """
        recent, older, window = self._recent, self._older, self._window
        leaving = max(0, len(window) + ahead - self.D)
        for _ in range(ahead):
            recent = self.c * recent
        for s in islice(chain(window, repeat(0.0)), leaving):
            older = self.c * (older + s)
        steps = 0.0
        for s in islice(window, leaving, None) if ahead else window:
            steps += s
        return self._scale * (older + recent + (self.c + self.gamma) * steps)

    def decide(self, gap: float, moved: float, silent: bool | None = None) -> Decision:  # noqa: ARG002, another rule's
        """Silence if ||theta_hat^{k-1} - theta^k||^2 = `gap` allows it; counts the age d_i^k.

        With `silent` that is decided already, and only judged.
        """
        return _decided(self, gap, self.bound(), silent)

    def observe(self, step: float) -> None:
        """Take in s_k = ||x^k - x^{k+1}||^2 at the end of iteration k."""
        self._recent = self.c * (self._recent + step)
        self._window.append(step)
        if len(self._window) > self.D:
            self._older = self.c * (self._older + self._window.popleft())


class StepRule:
    """One dimensionless threshold: silence while the copy is within tau of the vector's own steps.

    Worker i stays silent while its age is below D and

        ||v_hat - v^k||^2 <= tau^2 * mean of the last `WINDOW` values of ||v^j - v^{j-1}||^2

    whatever units v is in, with no constant of the problem. tau below 1 asks for an error smaller
    than one usual step. A dual method gives `mu` = mu_i: v = theta_i follows the steps of x_i by
    no more than ||x^j - x^{j-1}|| / mu_i, and it is these that count.

    The safeguard: steps must shrink. Should the mean exceed all that it was between `past` and
    2 `past` exchanges ago (those of an accelerated method go in waves: it gives their length), or
    jump far above all that it was, then worker i halves its tau and is strict at once: it tells
    everything, as the method without laziness would, until its steps are down to half of what they
    were then.
    """

    STATE = ("tau", "age", "alarms", "_window", "_means", "_strict_above")

    WINDOW = 5
    RELIEF = 0.25  # of the mean square: half of the step
    BURST = 16.0  # of the mean square: four times the step
    FADING = 0.8  # in an exchange, of the second differences that a promise reckons with

    def __init__(self, *, tau: float, D: int, mu: float | None = None, past: int = 10) -> None:
        self.tau = tau
        self.D = D
        self.mu = mu
        self.age = 0
        self.alarms = 0
        self._window: deque[float] = deque(maxlen=self.WINDOW)
        self._past = past
        self._means: deque[float] = deque(maxlen=2 * past)
        self._strict_above = inf  # the mean at which we may be lazy again; inf: we may

    def __str__(self) -> str:
        return f"tau = {self.tau:g}, D = {self.D}"

    @property
    def strict(self) -> bool:
        """Whether worker i tells everything, since its steps have grown and not yet shrunk."""
        return self._strict_above < inf

    def bound(self, ahead: int = 0) -> float:
        """Right-hand side of the condition, or what it should be `ahead` exchanges from now.

        Each step until then is taken as the smaller of the last two. That is an assumption: where
        steps shrink faster, the bound will too.
        """
        return self.tau**2 * self._mean(ahead)

    def decide(self, gap: float, moved: float, silent: bool | None = None) -> Decision:
        """Silence if ||v_hat - v^k||^2 = `gap` allows it, after a step of ||.||^2 = `moved`.

        Takes the step into the mean, halves tau where steps have grown, counts the age. With
        `silent` that is decided already, and only judged.
        """
        if self.mu is None:
            self._window.append(moved)
        mean = self._mean()
        self._watch(mean)
        return _decided(self, gap, self.tau**2 * mean, silent)

    def _mean(self, ahead: int = 0) -> float:
        window = self._window
        if ahead and window:
            coming = min(islice(reversed(window), 2))
            window = deque(window, self.WINDOW)
            window.extend([coming] * min(ahead, self.WINDOW))
        steps = 0.0
        for s in window:
            steps += s
        return steps / max(1, len(window))

    def _watch(self, mean: float) -> None:
        """Be strict from now on if the steps have grown; or no longer, if they have shrunk."""
        if self._strict_above == inf and self._has_grown(mean):
            self.alarms += 1
            self.tau /= 2.0
            self._strict_above = self.RELIEF * mean
        self._means.append(mean)
        if mean <= self._strict_above:
            self._strict_above = inf

    def _has_grown(self, mean: float) -> bool:
        """Whether the mean is above all that it was long ago, or far above all before this window.

        A NaN has grown.
        """
        long_ago = len(self._means) - self._past
        if long_ago > 0 and not mean <= max(islice(self._means, long_ago)):
            return True
        lately = len(self._means) - self.WINDOW
        return lately > 0 and not mean <= self.BURST * max(islice(self._means, lately))

    def observe(self, step: float) -> None:
        """Take in ||x^k - x^{k+1}||^2 at the end of iteration k, where these steps count."""
        if self.mu is not None:
            self._window.append(step / self.mu**2)


def _decided(rule: LazyRule | StepRule, gap: float, bound: float, silent: bool | None) -> Decision:
    """Silence if the condition allows it, or as it was promised; counts the age."""
    allowed = rule.age < rule.D and gap <= bound and not rule.strict
    if silent is None:
        silent = allowed
    if not silent:
        rule.age = 0
        return Decision(send=True, bound=bound)
    rule.age += 1
    return Decision(send=False, overdue=not allowed, gap=gap, bound=bound)
