"""The watcher's web server: one page with its own assets, and what it is told over time.

/            the page
/mesh        whether the run is live; in a replay also the mesh, its curves and its faults
/events      live: server-sent events, each a JSON object; only ever from us to the browser
/pictures    replay: the pictures of rounds `first` to `first` + `count` - 1
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from aiohttp import web

from dlag_lab.watch.following import Following
from dlag_lab.watch.gathering import Gathering
from dlag_lab.watch.picture import Picture
from dlag_lab.watch.replay import Replay
from dlag_node.errors import ConfigError
from dlag_node.net.sockets import page_address
from dlag_node.wire.watching import Fault

PAGE = Path(__file__).parent / "page"
_EVERY_SECONDS = 1.0
_PICTURES_AT_MOST = 500
_LAST_WORDS_SECONDS = 1.0  # for browsers to hear how it ended
_HEADERS = {
    # nothing from elsewhere, whatever a text may contain
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Source(Protocol):
    """What there is to see."""

    def routes(self) -> list[web.RouteDef]:
        """The addresses under which it is told."""


class Live:
    """A run while it runs: everybody who looks gets the newest picture, once a second."""

    def __init__(self, gathering: Gathering, following: Following | None) -> None:
        self._gathering = gathering
        self._following = following
        self._mesh = gathering.mesh
        self._picture: Picture | None = None  # the newest, of that mesh
        self._over = asyncio.Event()
        self._readers = 0

    def routes(self) -> list[web.RouteDef]:
        """The mesh, and events."""
        return [web.get("/mesh", self._describe), web.get("/events", self._events)]

    async def keep_up(self) -> None:
        """Keep picture and curves up to date, whether anybody looks or not."""
        while True:
            self._look()
            await asyncio.sleep(_EVERY_SECONDS)

    async def end(self) -> None:
        """Let those who look hear the last words."""
        self._look()
        self._over.set()
        until = time.monotonic() + _LAST_WORDS_SECONDS
        while self._readers and time.monotonic() < until:
            await asyncio.sleep(0.02)

    def _look(self) -> None:
        if self._following is not None:
            self._following.look()
        self._picture = self._gathering.picture(time.monotonic())
        if self._picture is not None:
            self._gathering.note_costs(self._picture)
        self._mesh = self._gathering.mesh

    async def _describe(self, _: web.Request) -> web.Response:
        return web.json_response({"live": True})  # the mesh comes with the events

    async def _events(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        self._readers += 1
        try:
            await self._tell(response)
        except ConnectionError:
            pass  # it looks no more
        finally:
            self._readers -= 1
        return response

    async def _tell(self, response: web.StreamResponse) -> None:
        """One browser; a slow one misses pictures and holds up nobody."""
        gathering = self._gathering
        mesh, gap_k, cost_k, faults, over = None, -1, -1, 0, False
        while not over:
            over = self._over.is_set()
            event: dict[str, Any] = {"over": over}
            if self._mesh is not mesh:
                mesh, gap_k, cost_k, faults = self._mesh, -1, -1, 0
                event["mesh"] = None if mesh is None else mesh.to_json()
            picture = self._picture
            if picture is not None:
                event["picture"] = picture.to_json()
                gap = [] if self._following is None else self._following.gap.after(gap_k)
                costs = gathering.costs.after(cost_k)
                event["curves"] = {"gap": gap, "costs": costs}
                gap_k = gap[-1][0] if gap else gap_k
                cost_k = costs[-1][0] if costs else cost_k
                new = gathering.faults_heard - faults
                event["faults"] = _listed(gathering.faults[-new:] if new else [])
                faults = gathering.faults_heard
            await response.write(f"data: {json.dumps(event, allow_nan=False)}\n\n".encode())
            if not over:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._over.wait(), _EVERY_SECONDS)


class Recorded:
    """A run that is in a folder."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay

    def routes(self) -> list[web.RouteDef]:
        """The mesh with all curves, and pictures on demand."""
        return [web.get("/mesh", self._mesh), web.get("/pictures", self._pictures)]

    async def _mesh(self, _: web.Request) -> web.Response:
        replay = self._replay
        return web.json_response(
            {
                "mesh": replay.mesh.to_json(),
                "live": False,
                "curves": replay.curves(),
                "faults": _listed(replay.faults),
            }
        )

    async def _pictures(self, request: web.Request) -> web.Response:
        try:
            first, count = (int(request.query[name]) for name in ("first", "count"))
        except (KeyError, ValueError) as exc:
            raise web.HTTPBadRequest(text="expected first=K&count=N") from exc
        rounds = self._replay.mesh.rounds or 0
        if first < 0 or not 1 <= count <= _PICTURES_AT_MOST:
            text = (
                f"first = {first}, count = {count}: expected at least 0, 1 to {_PICTURES_AT_MOST}"
            )
            raise web.HTTPBadRequest(text=text)
        last = min(first + count, rounds + 1)
        pictures = [self._replay.picture(k).to_json() for k in range(first, last)]
        return web.json_response(pictures)


async def serve(address: str, source: Source) -> tuple[web.AppRunner, str]:
    """Serve the page for this source; returns what to clean up at the end, and the page's URL."""
    host, port = page_address(address)
    app = web.Application(middlewares=[_with_headers])
    app.add_routes([web.get("/", _index), *source.routes(), web.static("/page", PAGE)])
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, host.strip("[]"), port).start()
    except OSError as exc:
        await runner.cleanup()
        raise ConfigError(f"cannot serve the page on {address}: {exc}") from exc
    return runner, f"http://{host}:{runner.addresses[0][1]}/"


@web.middleware
async def _with_headers(request: web.Request, handler: Handler) -> web.StreamResponse:
    response = await handler(request)
    if not response.prepared:
        response.headers.update(_HEADERS)
    return response


async def _index(_: web.Request) -> web.FileResponse:
    return web.FileResponse(PAGE / "index.html")


def _listed(faults: Sequence[tuple[int, Fault]]) -> list[dict[str, Any]]:
    return [{"node": node} | asdict(fault) for node, fault in faults]
