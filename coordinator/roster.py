"""The roster, a pure state machine: messages in, messages out, no socket and no clock."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from coordinator.admission import Admission
from coordinator.draft import Draft, Layout, Terms
from coordinator.survey import chosen_graph
from dlag_node.data import Summary
from dlag_node.errors import ConfigError
from dlag_node.wire.control import (
    Assignment,
    Chunk,
    Enrol,
    Failed,
    Fetch,
    Finished,
    FromCoordinator,
    FromNode,
    Full,
    Join,
    Measured,
    Report,
    Started,
    Survey,
    Unopened,
    Waiting,
)
from dlag_node.wire.frames import Abort, Refuse, Who
from dlag_node.wire.limits import CHUNK_BYTES, MAX_TEXT, PROTOCOL

Reply = tuple[bytes, FromCoordinator]  # a peer's routing id and what it is told


class Stage(Enum):
    """How far a node has come."""

    JOINED = "joined"
    REPORTED = "reported"
    STARTED = "started"
    FINISHED = "finished"


# The stage that a message takes a node out of: none is passed over, none comes twice.
_FROM_STAGE = {Report: Stage.JOINED, Started: Stage.REPORTED, Finished: Stage.STARTED}
_BEYOND = {Started: (Stage.STARTED, Stage.FINISHED), Finished: (Stage.FINISHED,)}


@dataclass(slots=True)
class Member:
    """One enrolled node."""

    peer: bytes
    held: Summary | None = None  # what it said of the samples that it holds itself
    stage: Stage = Stage.JOINED
    report: Report | None = None
    key: bytes | None = None  # None: a run without keys


class Roster:
    """Who has joined, who has reported, who has started; hands out what the draft says."""

    def __init__(self, draft: Draft, admission: Admission | None = None) -> None:
        self.draft = draft
        # what all must agree on; None: not before all have said what they hold, or have measured
        self.terms: Terms | None = None if draft.dealt is None else draft.dealt.terms
        self.layout: Layout | None = draft.layout
        self._admission = admission
        self.members: dict[int, Member] = {}
        self.failure: str | None = None
        self.refused = 0
        self.surplus = 0  # nodes that came when every place was taken
        self._shards: dict[int, tuple[Enrol, bytes]] = {}  # from a join to its report
        self._assignments: list[Assignment] = []  # once all have reported
        self.unopened: list[tuple[int, Unopened]] = []  # links that nodes wait for before round 1
        self._surveys = 0
        self._measured: dict[int, Measured] = {}

    def count(self, stage: Stage) -> int:
        """How many nodes have come at least as far as this stage."""
        order = list(Stage)
        return sum(order.index(m.stage) >= order.index(stage) for m in self.members.values())

    @property
    def started(self) -> bool:
        """Whether every node has started: from here on nobody needs the coordinator."""
        return self.count(Stage.STARTED) == self.draft.nodes

    @property
    def finished(self) -> bool:
        """Whether every node has said that it is done."""
        return self.count(Stage.FINISHED) == self.draft.nodes

    def passes(self, key: bytes) -> bool:
        """Whether a key may speak to us at all."""
        return self._admission is not None and self._admission.passes(key)

    def handle(self, peer: bytes, message: FromNode, key: bytes | None = None) -> list[Reply]:
        """Take a node's message and say what to answer, to it and to others.

        `key` is the one that its connection has proven to hold.
        """
        if isinstance(message, Join):
            return self._join(peer, message, key)
        node = self._node_of(peer, key)
        if node is None:
            # it joined a coordinator before us, which died: it may join us, or needs nobody now
            return [(peer, Who())] if isinstance(message, Fetch | Report | Waiting) else []
        member = self.members[node]
        if isinstance(message, Started | Finished) and member.stage in _BEYOND[type(message)]:
            return []  # it says so again after a crash
        if _FROM_STAGE.get(type(message), member.stage) is not member.stage:
            kind = type(message).__name__
            return self._refuse(peer, f"a {kind} from a node that has {member.stage.value}")
        match message:
            case Fetch():
                return self._fetch(peer, node, message.chunk)
            case Report():
                return self._report(node, member, message)
            case Measured():
                return self._take_measured(node, message)
            case Unopened():
                self.unopened.append((node, message))
            case Started():
                member.stage = Stage.STARTED
            case Finished():
                member.stage = Stage.FINISHED
            case Failed():
                return self._fail(f"node {node}: {message.reason}")
        return []

    def _join(self, peer: bytes, join: Join, key: bytes | None) -> list[Reply]:
        if join.version != PROTOCOL:
            return self._refuse(peer, f"protocol version {join.version}, this is {PROTOCOL}")
        hold = self.draft.dealt is None
        if (join.held is None) == hold:
            has, expected = ("no", "with") if hold else ("its own", "without")
            return self._refuse(
                peer, f"a node with {has} data: expected dlag-node {expected} --data"
            )
        known = self._node_of(peer, key)
        if known is not None:  # it crashed before it knew its neighbors, and begins again
            member = self.members[known]
            if self.terms is not None and join.held != member.held:
                return self._refuse(peer, f"the data of node {known} have changed since it joined")
            member.stage, member.held = Stage.JOINED, join.held
            return [] if self.terms is None else [(peer, self._enrolment(known, self.terms)[0])]
        wanted, others = join.wanted, set[int]()
        if self._admission is not None and key is not None:
            if not (self._admission.admits(key) or self._admission.redeem(key, join.token)):
                return self._refuse(peer, f"key {key.hex()} is not admitted, nor is its token")
            if any(key == member.key for member in self.members.values()):
                return self._refuse(peer, f"key {key.hex()} has a place already")
            bound, others = self._admission.bound_to(key), self._admission.others_than(key)
            wanted = bound if wanted is None else wanted
            if wanted in others or bound not in (None, wanted):
                return self._refuse(peer, f"id {wanted} is not for key {key.hex()}")
        free = [i for i in range(self.draft.nodes) if i not in self.members and i not in others]
        if not free and wanted is None:
            self.surplus += 1
            return [(peer, Full(self.draft.nodes))]
        if wanted is not None and wanted not in free:
            place = "is taken" if wanted in self.members else "does not exist"
            return self._refuse(peer, f"id {wanted} {place}: ids are 0 to {self.draft.nodes - 1}")
        node = free[0] if wanted is None else wanted
        self.members[node] = Member(peer, join.held, key=key)
        if self.terms is not None:
            return [(peer, self._enrolment(node, self.terms)[0])]
        return self._settle() if len(self.members) == self.draft.nodes else []

    def _settle(self) -> list[Reply]:
        """All have said what they hold: everybody is told what is done alike to all samples."""
        members = [self.members[i] for i in range(self.draft.nodes)]
        try:
            terms = self.draft.settle([each.held for each in members if each.held is not None])
        except ConfigError as exc:
            return self._fail(str(exc))
        self.terms = terms
        return [(m.peer, self._enrolment(i, terms)[0]) for i, m in enumerate(members)]

    def _fetch(self, peer: bytes, node: int, chunk: int) -> list[Reply]:
        if self.terms is None:
            return self._refuse(peer, f"chunk {chunk} before an Enrol")
        enrol, body = self._enrolment(node, self.terms)
        if not 0 <= chunk < enrol.chunks:
            return self._refuse(peer, f"chunk {chunk} of a shard of {enrol.chunks}")
        return [(peer, Chunk(chunk, body[chunk * CHUNK_BYTES : (chunk + 1) * CHUNK_BYTES]))]

    def _enrolment(self, node: int, terms: Terms) -> tuple[Enrol, bytes]:
        if node not in self._shards:
            self._shards[node] = self.draft.enrolment(node, terms)
        return self._shards[node]

    def _report(self, node: int, member: Member, report: Report) -> list[Reply]:
        if self.terms is None:
            return self._refuse(member.peer, "a Report before an Enrol")
        member.stage = Stage.REPORTED
        self._shards.pop(node, None)
        if self._assignments:  # all have been told already: what they were told stands
            return [(member.peer, self._assignments[node])]
        member.report = report
        if self.count(Stage.REPORTED) < self.draft.nodes:
            return []
        members = [self.members[i] for i in range(self.draft.nodes)]
        reports = [m.report for m in members if m.report is not None]
        total = sum(each.samples for each in reports)
        if total != self.terms.n0:
            return self._fail(f"the nodes report {total} samples, the data has {self.terms.n0}")
        if self.layout is None:
            return self._survey(members, reports)
        return self._assign(members, reports, self.terms, self.layout)

    def _survey(self, members: list[Member], reports: list[Report]) -> list[Reply]:
        """Ask all for the way to all; again, when one has come back in the middle of it."""
        self._surveys += 1
        self._measured.clear()
        survey = Survey(self._surveys, tuple(each.address for each in reports))
        return [(member.peer, survey) for member in members]

    def _take_measured(self, node: int, measured: Measured) -> list[Reply]:
        members = [self.members[i] for i in range(self.draft.nodes) if i in self.members]
        reports = [m.report for m in members if m.report is not None]
        if measured.number != self._surveys or self.layout is not None or self.terms is None:
            return []  # of a survey that was begun again
        if len(measured.times) != self.draft.nodes:
            return self._refuse(self.members[node].peer, f"{len(measured.times)} times measured")
        self._measured[node] = measured
        if len(self._measured) < self.draft.nodes:
            return []
        try:
            graph = chosen_graph(self._measured, [each.address for each in reports])
        except ConfigError as exc:
            return self._fail(str(exc))
        self.layout = self.draft.lay_out(graph)
        return self._assign(members, reports, self.terms, self.layout)

    def _assign(
        self, members: list[Member], reports: list[Report], terms: Terms, layout: Layout
    ) -> list[Reply]:
        assignments = self.draft.assignments(reports, terms, layout)
        self._assignments = [self._with_keys(each) for each in assignments]
        return [(m.peer, each) for m, each in zip(members, self._assignments, strict=True)]

    def _fail(self, reason: str) -> list[Reply]:
        """The run cannot go on: everybody hears why."""
        self.failure = self.failure or reason
        return [(m.peer, Abort(reason[:MAX_TEXT])) for m in self.members.values()]

    def _refuse(self, peer: bytes, reason: str) -> list[Reply]:
        self.refused += 1
        return [(peer, Refuse(reason))]

    def _with_keys(self, assignment: Assignment) -> Assignment:
        """Who calls whom is sure only of a neighbor whose key it knows."""
        peers = (replace(each, key=self.members[each.node].key) for each in assignment.peers)
        return replace(assignment, peers=tuple(peers))

    def _node_of(self, peer: bytes, key: bytes | None) -> int | None:
        for node, member in self.members.items():
            if member.peer == peer and member.key == key:
                return node
        return None
