"""Keys that processes make and post themselves: whole, found again, cleared when nobody lives."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import pytest

from coordinator.admission import Admission
from dlag_node.errors import ConfigError
from dlag_node.trust.keys import make_pair, read_admitted, read_public
from dlag_node.trust.posting import clear_posts, own_pair, wait_for_post

DEADLINE = 30.0
HOLD = """
import sys
from pathlib import Path
from dlag_node.trust.posting import own_pair
with own_pair(Path(sys.argv[1]), Path(sys.argv[2])) as pair:
    print(pair.public.hex(), flush=True)
    sys.stdin.read()
"""


def test_a_pair_is_made_once_and_its_public_half_is_for_all(tmp_path: Path) -> None:
    key, post = tmp_path / "own" / "a.key", tmp_path / "trust" / "a.pub"
    with own_pair(key, post) as first:
        assert read_public(post) == first.public
        assert post.stat().st_mode & 0o777 == 0o644
        assert key.stat().st_mode & 0o777 == 0o600
    assert read_public(post) == first.public  # it may come back
    with own_pair(key, post) as again:
        assert again == first
    assert first.secret.hex() not in post.read_text()
    assert [path.name for path in post.parent.iterdir()] == ["a.pub"]


def test_without_a_place_to_post_it_at_a_key_is_only_read(tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigError, match=r"a\.key.*`dlag keys` makes keys"),
        own_pair(tmp_path / "a.key", None),
    ):
        pass
    assert list(tmp_path.iterdir()) == []
    made = make_pair(tmp_path / "a.key")
    with own_pair(tmp_path / "a.key", None) as pair:
        assert pair == made


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "trust").touch()
    with (
        pytest.raises(ConfigError, match="cannot post a key at"),
        own_pair(tmp_path / "a.key", tmp_path / "trust" / "a.pub"),
    ):
        pass


def test_only_posts_whose_process_is_gone_are_cleared(tmp_path: Path) -> None:
    dead, alive = tmp_path / "dead.pub", tmp_path / "nodes" / "alive.pub"
    with own_pair(tmp_path / "own" / "dead.key", dead):
        pass
    argv = [sys.executable, "-c", HOLD, tmp_path / "own" / "alive.key", alive]
    holder = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with holder:
        assert holder.stdout is not None
        told = holder.stdout.readline().strip()
        assert (tmp_path / "own" / "dead.pub").exists()
        (tmp_path / "own" / "dead.pub").unlink()
        (tmp_path / "own" / "alive.pub").unlink()
        assert clear_posts(tmp_path) == 1
        assert not dead.exists()
        assert read_public(alive).hex() == told
        holder.kill()
        holder.wait(DEADLINE)
    assert clear_posts(tmp_path) == 1
    assert not alive.exists()
    assert clear_posts(tmp_path / "nowhere") == 0


def test_many_may_post_at_once_and_none_is_overlooked(tmp_path: Path) -> None:
    folder = tmp_path / "trust"
    folder.mkdir()
    admission = Admission(folder)

    def post(i: int) -> bytes:
        with own_pair(tmp_path / f"{i}.key", folder / f"{i}.pub") as pair:
            return pair.public

    public = []
    with ThreadPoolExecutor(25) as pool:
        for done in as_completed([pool.submit(post, i) for i in range(100)]):
            public.append(done.result())
            assert admission.admits(public[-1])  # while others are being posted
    assert read_admitted(folder) == dict.fromkeys(public)


async def test_who_needs_a_key_waits_for_it(tmp_path: Path) -> None:
    post = tmp_path / "trust" / "a.pub"
    waiting = asyncio.create_task(wait_for_post(post, timeout=DEADLINE))
    await asyncio.sleep(0)
    assert not waiting.done()
    with own_pair(tmp_path / "a.key", post):
        await asyncio.wait_for(waiting, DEADLINE)
    with pytest.raises(ConfigError, match=r"b\.pub: no key was posted there for 0\.2 s"):
        await wait_for_post(tmp_path / "b.pub", timeout=0.2)
