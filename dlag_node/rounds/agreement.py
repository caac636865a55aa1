"""How the nodes agree, among themselves, to stop, and all in the same round.

Rounds are synchronous between neighbors. In its first frame of round k + 1 a node tells each
neighbor one small number about the time up to the end of round k, and nothing while that is 0; one
that sends no frame in a round, since it has promised to be silent, tells 0. T is the diameter of
the graph; q_i(k) says whether node i was calm at the end of round k. A word crosses an edge within
`hop` rounds: 1, or R + 1 where a node may promise to be silent for R rounds.

**Knowing that all are calm.** Node i counts

    c_i(k) = 0                                              if not q_i(k)
    c_i(k) = 1 + min(c_i(k-1), c_j(k-1) of neighbors j)     if q_i(k),     c_i(0) = 0

  Claim: if c_i(k) >= m, then q_j(k - t) for every node j and every t with dist(i, j) <= t < m.
  By induction on m. For t = 0 it is q_i(k). For t >= 1, j is reached by a first hop, to a neighbor
  or to i itself, and at most t - 1 others; whoever is reached by the first one has c(k - 1) >=
  m - 1, which gives q_j(k - 1 - (t - 1)).

  Silence can only make a count smaller, and the claim holds as it stands. But counts must be able
  to grow: **who counts promises nothing**. What it had promised ends within R rounds, and if all
  are calm from then on they all speak, in tokens if need be, for as long as they are.

  So c_i(k) = T + 1 tells node i that at the end of round k - T everybody was calm (t = T reaches
  all). No smaller count would do: c_i(k) = T says nothing of a node at distance T. And if all are
  calm from round k on, each count grows by 1 a round, and is T + 1 in round k + T at the latest (R
  rounds later, where there were promises).

**Stopping in the same round.** Whoever knows at the end of round k that all should stop, by its
count or because it was asked from outside, announces the round k + T hop; whoever hears of several
takes the earliest, and passes on what it knows whenever it speaks.

  Claim: all stop at the end of the same round, s, the earliest that is ever announced. Whoever
  announced s did so at the end of round s - T hop; a node at distance d has heard of it by the end
  of round s - T hop + d hop <= s. Everything else that was announced is later than s, so that
  nobody stops before; and at the end of round s everybody knows of s, and stops.

Once a stop is known the count has no further use: one number is told, c_i >= 0, or below 0 the
rounds that are left and why.

Rounds without news (`rounds.talk`) are not counted: a method of which only few workers speak in a
round lets all of them meet now and then, and T is a number of such meetings.
"""

from __future__ import annotations

from collections.abc import Sequence

WHYS = ("tol", "max-seconds", "asked")  # of two that stop in one round the first is taken
_NEVER = -1


class Agreement:
    """One node's part in it, on a graph of this diameter (or less)."""

    STATE = ("_rounds", "_count", "_at", "_why")

    def __init__(self, diameter: int, *, hop: int = 1) -> None:
        self.diameter = diameter
        self._notice = diameter * hop  # rounds from an announcement to the stop
        self._rounds = 0  # closed
        self._count = 0  # c_i
        self._at = _NEVER  # the round at whose end all stop
        self._why = 0

    @property
    def known(self) -> bool:
        """Whether a stop is agreed on."""
        return self._at != _NEVER

    @property
    def over(self) -> bool:
        """Whether the round that has just ended was the last."""
        return self._rounds == self._at

    @property
    def why(self) -> str | None:
        """Why all stop; None while they do not."""
        return WHYS[self._why] if self.known else None

    @property
    def word(self) -> int:
        """What the first frame of the next round tells the neighbors; 0 is not worth a byte."""
        if self._at == _NEVER:
            return self._count
        left = self._at - self._rounds  # from that frame's round on: 1 to T hop
        return -(len(WHYS) * (left - 1) + self._why + 1)

    @property
    def may_promise(self) -> bool:
        """Whether to be silent without a word: not while we count, and others count on us."""
        return self._count == 0

    def close(self, heard: Sequence[int] | None, *, calm: bool) -> None:
        """The end of a round, in which the neighbors told this; None: the round had no news."""
        if heard is None:
            return
        before = self._rounds
        self._rounds += 1
        for word in heard:
            if word < 0:
                left, why = divmod(-word - 1, len(WHYS))
                self._learn(before + left + 1, why)
        if not (calm and not self.known):
            self._count = 0
            return
        self._count = 1 + min([self._count, *heard])
        if self._count > self.diameter:
            self._announce(0)

    def announce(self, why: str) -> None:
        """Somebody outside wants all to stop; between two rounds only.

        The frame of the next round must be news to every neighbor: a node that makes rounds again
        after a crash must announce nothing of its own in them. And what was announced must survive
        the next crash, since no one can compute it again.
        """
        self._announce(WHYS.index(why))

    def _announce(self, why: int) -> None:
        self._learn(self._rounds + self._notice, why)

    def _learn(self, at: int, why: int) -> None:
        if not self.known or (at, why) < (self._at, self._why):
            self._at, self._why = at, why
