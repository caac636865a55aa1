"""Words on stopping in one round: to whom they were told, and from whom they were heard."""

from __future__ import annotations

from dlag_node.rounds.window import Window

_NOBODY: frozenset[int] = frozenset()


class Talk:
    """One node's part in the talk of a round.

    A word goes into the first frame of a round to each neighbor, and is heard over the round's
    exchanges with the `partners`: those over whom words travel, None for every neighbor. A partner
    that was silent all round, as it had promised, tells 0. A round brings news if all partners were
    due in it, and, where these are all neighbors, at once; any other does not count. The same
    rounds must count everywhere, and one with few neighbors may have heard each of them by chance.
    """

    def __init__(self, window: Window, partners: frozenset[int] | None) -> None:
        self.all_due = False  # something was due from every neighbor in an exchange of this round
        self._all = window.known
        self._partners = partners
        self._due = _NOBODY
        self._told = _NOBODY
        self._heard: dict[int, int] = {}

    def word(self, word: int, to: frozenset[int] | None) -> int:
        """What a frame to these neighbors says of `word`: nothing, where all of them know it."""
        to = self._all if to is None else to
        if to <= self._told:
            return 0
        self._told |= to
        return word

    def expect(self, due: frozenset[int]) -> None:
        """Something is due from these neighbors alone in an exchange of this round."""
        self._due |= due

    def hear(self, words: dict[int, int]) -> None:
        """What was told in an exchange of this round."""
        self._heard.update(words)

    def close(self) -> list[int] | None:
        """The end of a round: what each partner told in it; None if the round brought no news."""
        partners = self._all if self._partners is None else self._partners
        news = self.all_due or (self._partners and self._due >= self._partners)
        heard = [self._heard.get(j, 0) for j in partners] if news else None
        self.all_due = False
        self._due = self._told = _NOBODY
        if self._heard:
            self._heard = {}
        return heard
