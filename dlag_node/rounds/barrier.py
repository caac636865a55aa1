"""The barrier between neighbors: exchange `seq` opens when all that is due in it is here."""

from __future__ import annotations

from dlag_node.errors import LocalProtocolError, RemoteProtocolError
from dlag_node.rounds.window import Window
from dlag_node.wire.frames import Array, Delta, RoundFrame

_NOBODY: frozenset[int] = frozenset()


class Barrier:
    """Holds the frames of exchange `seq` and of those after it that fit, each neighbor's once.

    What fits is the window's to say, and who is due in an exchange the method's (`expect`), but for
    those who have promised to be silent in it: for them nobody waits.
    """

    def __init__(self, window: Window) -> None:
        self.window = window
        self.neighbors = window.neighbors
        self.latest = -1  # who sent the last frame that was waited for; -1: nobody was
        self.begin_at(0)

    def begin_at(self, seq: int) -> None:
        """Go on at exchange `seq`, as after a crash: of its frames none is here."""
        self.seq = seq
        self._held: dict[int, dict[int, RoundFrame]] = {q: {} for q in self.window.wanted(seq)}
        self._quiet: dict[int, set[int]] = {}  # by exchange: who has promised to be silent in it
        self._now = self._held[seq]
        self._due: frozenset[int] | None = None  # in exchange `seq`; None: everybody
        self.lacking = len(self.neighbors)  # frames that are due and not here, since `expect`

    def expect(self, due: frozenset[int] | None) -> None:
        """The method is in exchange `seq`: something is due from these; None: from everybody."""
        self.latest = -1
        if due is None:
            self.lacking = len(self.neighbors) - len(self._now)
            if self._quiet:
                self.lacking -= len(self._quiet.get(self.seq, _NOBODY))
            return
        if not due <= self.window.known:
            raise LocalProtocolError(
                f"exchange {self.seq}: something due from nodes {sorted(due)}, "
                f"our neighbors are {self.neighbors}"
            )
        for neighbor in self._now:
            if neighbor not in due:
                raise self._unexpected(neighbor)
        self._due = due
        self.lacking = len(due - self._quiet.get(self.seq, _NOBODY)) - len(self._now)

    def missing(self) -> list[int]:
        """The neighbors whose frame for exchange `seq` is due and not here yet."""
        due = self.window.known if self._due is None else self._due
        return sorted(due - self._quiet.get(self.seq, _NOBODY) - self._now.keys())

    def put(self, neighbor: int, frame: RoundFrame) -> bool:
        """Take a neighbor's frame; False for a harmless repeat."""
        slot = self._held.get(frame.seq)
        if slot is None or neighbor not in self.window.known:
            self.window.refuse(neighbor, frame, self.seq)
            # a repeat, or, after a crash of ours, one from before it that speaks of what is to come
            if frame.promise:
                self._note(neighbor, self._promised(neighbor, frame))
            return False
        if neighbor in slot:
            return False
        if self._quiet and neighbor in self._quiet.get(frame.seq, _NOBODY):
            raise RemoteProtocolError(
                f"neighbor {neighbor} sent exchange {frame.seq}, in which it had promised silence"
            )
        promised = self._promised(neighbor, frame) if frame.promise else None
        if slot is self._now:
            if self._due is not None and neighbor not in self._due:
                raise self._unexpected(neighbor)
            self.lacking -= 1
            self.latest = neighbor
        slot[neighbor] = frame
        if promised:
            self._note(neighbor, promised)
        return True

    def words(self) -> dict[int, int]:
        """What the neighbors tell of stopping in exchange `seq`; of who tells nothing, nothing."""
        return {j: frame.word for j, frame in self._now.items() if frame.word}

    def open(self) -> dict[int, Array | None]:
        """The inbox of exchange `seq`, in ascending node id; the barrier moves on to the next."""
        assert not self.lacking
        seq = self.seq
        now = self._held.pop(seq)
        if self._quiet:
            self._quiet.pop(seq, None)
        inbox = {
            j: frame.vector if type(frame := now.get(j)) is Delta else None for j in self.neighbors
        }
        self.seq = seq = seq + 1
        self._held[seq + self.window.lead] = {}
        self._now = self._held[seq]
        self._due = None
        return inbox

    def _promised(self, neighbor: int, frame: RoundFrame) -> list[int]:
        """The exchanges to come that a frame covers; refused if it has sent one of them."""
        promised = [seq for seq in self.window.covered(frame) if seq >= self.seq]
        for seq in promised:
            if neighbor in self._held.get(seq, ()):
                raise RemoteProtocolError(
                    f"neighbor {neighbor} promised silence in exchange {seq}, which it has sent"
                )
        return promised

    def _note(self, neighbor: int, promised: list[int]) -> None:
        """Take a neighbor at its word: in these exchanges nobody waits for it."""
        for seq in promised:
            quiet = self._quiet.setdefault(seq, set())
            if neighbor not in quiet:
                quiet.add(neighbor)
                if seq == self.seq and (self._due is None or neighbor in self._due):
                    self.lacking -= 1
                    self.latest = neighbor

    def _unexpected(self, neighbor: int) -> RemoteProtocolError:
        return RemoteProtocolError(
            f"neighbor {neighbor} sent exchange {self.seq}, in which nothing was due from it"
        )
