"""`dlag watch` in a real browser, while a mesh runs and afterwards; and what it costs the mesh."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil
import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

from dlag_lab.folder import RunFolder, read_object
from dlag_lab.running import ask_to_stop
from tests.cluster.laboratory import laboratory
from tests.cluster.meshes import ENDLESS, NEVER, command, finish, read_until

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
PATIENCE = 60.0  # seconds
# rounds that take their time: there are not too many of them to be simulated, in the end
SETTINGS = {"method": "dlag:stop=epochs:120", "topology": "grid:2x3", "seed": 3}
FLAGS = [f"--{name}={value}" for name, value in {**SETTINGS, "rounds": ENDLESS}.items()]
SAME = ("theta_sha256", "rounds", "deltas_sent", "deltas_skipped", "bytes_payload")

NOTE_WHAT_IS_LIT = """
    window.everLit = new Set();
    new MutationObserver(changes => changes.forEach(({target}) => {
        if (target.matches('.half.lit')) everLit.add(target);
    })).observe(document.getElementById('graph'), {attributes: true, subtree: true});
"""

needs_browser = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None,
    reason="no browser: apt-get install chromium chromium-driver",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    try:
        chrome.set_window_size(1440, 900)
        yield chrome
    finally:
        chrome.quit()


def until(what: Callable[[], Any], name: str) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (found := what()):
        assert time.monotonic() < deadline, f"{name} never came"
        time.sleep(0.05)
    return found


def text(browser: webdriver.Chrome, name: str) -> str:
    return str(browser.find_element(By.ID, name).get_attribute("textContent"))


def number(browser: webdriver.Chrome, name: str) -> int:
    return int(text(browser, name).split()[0].replace(",", ""))


def state(browser: webdriver.Chrome) -> str:
    return str(browser.execute_script("return document.body.dataset.state"))


def lit(browser: webdriver.Chrome) -> set[tuple[int, int]]:
    """Whose deltas light an edge, and towards whom."""
    found = browser.execute_script(
        "return [...document.querySelectorAll('.half.lit')]"
        ".map(half => [half.dataset.from, half.dataset.to])"
    )
    return {(int(i), int(j)) for i, j in found}


def went_elsewhere(browser: webdriver.Chrome, url: str) -> list[str]:
    """Whatever the page loaded that is not ours."""
    loaded = browser.execute_script("return performance.getEntries().map(e => e.name)")
    return [name for name in loaded if "://" in name and not name.startswith(url)]


def process_of(run: subprocess.Popen[str], name: str) -> psutil.Process | None:
    """The process of the run whose output goes to that log."""
    for process in psutil.Process(run.pid).children(recursive=True):
        with suppress(OSError):
            if Path(f"/proc/{process.pid}/fd/2").readlink().name == f"{name}.log":
                return process
    return None


def events(url: str) -> Iterator[dict[str, Any]]:
    """What a browser would be told."""
    until = time.monotonic() + PATIENCE
    with urlopen(f"{url}events", timeout=PATIENCE) as stream:
        for line in stream:
            assert time.monotonic() < until, "what was waited for never came"
            if line.startswith(b"data: "):
                yield json.loads(line.removeprefix(b"data: "))


def hear_all_nodes(url: str) -> None:
    """Until the watcher has heard a round of every node."""
    for news in events(url):
        if "picture" in news and min(news["picture"]["round"]) > 0:
            return


def assert_as_alone(out: Path, reference: Path) -> None:
    """A run that was asked to stop ended with what as many rounds give where nobody looks on."""
    ours = read_object(RunFolder(out).summary_path)
    assert ours["ended"] == "asked"
    finish("simulate", reference, rounds=ours["rounds"], **SETTINGS)
    alone = read_object(RunFolder(reference).summary_path)
    assert {name: ours[name] for name in SAME} == {name: alone[name] for name in SAME}
    # on top of these, the words by which the nodes agree to stop: a byte on a frame at most
    more = ours["bytes_frames"] - alone["bytes_frames"]
    assert 0 < more <= ours["deltas_sent"] + ours["deltas_skipped"]


@needs_browser
def test_a_browser_sees_a_run_its_faults_and_its_end(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    argv = [*FLAGS, "--out", str(out), "--watch", "127.0.0.1:0", "--checkpoint", "5"]
    with command("dlag", "run", *argv, f"--target={NEVER}", "--no-figures") as run:
        url = read_until(run, "watch at").split()[-1]
        victim = until(lambda: process_of(run, "node-002"), "node 2")
        hear_all_nodes(url)
        victim.suspend()  # its neighbors wait for it, and say so
        browser.get(url)
        until(lambda: state(browser) == "live" and number(browser, "round") > 0, "a live picture")
        until(lambda: "waiting for neighbors" in text(browser, "faults"), "a fault")
        unheard = "return document.querySelector('[data-node=\"2\"]').classList.contains('unheard')"
        until(lambda: browser.execute_script(unheard), "a node that is not heard")
        assert "for 2" in text(browser, "waits")
        assert lit(browser) == set()
        browser.execute_script(NOTE_WHAT_IS_LIT)
        victim.kill()
        until(lambda: "back at round" in text(browser, "faults"), "a restart")
        until(lambda: browser.execute_script("return window.everLit.size") > 0, "a delta")
        ask_to_stop(out)
        until(lambda: state(browser) == "over", "the end")
        assert run.wait(PATIENCE) == 3  # such a target is never reached
        rounds = read_object(RunFolder(out).summary_path)["rounds"]
        assert number(browser, "round") == rounds
        assert "e-" in text(browser, "gap")
        assert number(browser, "sent") > 0
        assert went_elsewhere(browser, url) == []
    assert_as_alone(out, tmp_path / "alone")


@needs_browser
def test_a_browser_replays_a_run_and_lights_the_edges_that_deltas_crossed(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    finish("simulate", out, **{**SETTINGS, "rounds": 60})
    folder = RunFolder(out)
    with command("dlag", "watch", str(out), "--page", "127.0.0.1:0") as watch:
        assert watch.stdout is not None
        url = watch.stdout.readline().split()[-1]
        browser.get(url)
        until(lambda: state(browser) == "replay" and number(browser, "round") > 0, "a picture")
        browser.find_element(By.ID, "play").click()  # pause
        records = [folder.records(node) for node in range(6)]
        for k in (1, 23, 24, 60, 7):  # back and forth
            browser.execute_script(
                "const s = document.getElementById('scrub'); s.value = arguments[0]; s.oninput()", k
            )
            until(lambda k=k: number(browser, "where") == k, f"round {k}")  # type: ignore[misc]
            speak = {node for node in range(6) if "D" in records[node][k - 1].exchanges}
            edges = [(i, j) for a, b in folder.load().edges for i, j in ((a, b), (b, a))]
            assert lit(browser) == {(i, j) for i, j in edges if i in speak}
            sent = sum(record.deltas for each in records for record in each[:k])
            skipped = sum(each.skips + each.quiet for row in records for each in row[:k])
            assert number(browser, "sent") == sent
            assert number(browser, "always") == sent + skipped
            tokens = sum(each.skips for row in records for each in row[:k])
            assert text(browser, "skipped") == f"{tokens:,} + {skipped - tokens:,}"
            assert text(browser, "wire") == "not counted"
        browser.execute_script("document.getElementById('speed').value = 50")
        browser.find_element(By.ID, "play").click()
        until(lambda: number(browser, "where") == 60, "the end of the replay")
        assert went_elsewhere(browser, url) == []
        assert [each for each in browser.get_log("browser") if each["level"] == "SEVERE"] == []


def test_a_watcher_that_is_stopped_or_killed_changes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "run"
    argv = [*FLAGS, "--out", str(out), "--watch", "127.0.0.1:0", "--no-figures"]
    with command("dlag", "run", *argv) as run:
        url = read_until(run, "watch at").split()[-1]
        watcher = process_of(run, "watch")
        assert watcher is not None
        with urlopen(f"{url}mesh", timeout=PATIENCE) as answer:
            assert answer.status == 200
        watcher.suspend()
        until(lambda: (out / "trajectory.jsonl").exists(), "a round")
        until(lambda: (out / "trajectory.jsonl").read_text().count("\n") > 50, "round 50")
        watcher.kill()
        watcher.wait(PATIENCE)
        ask_to_stop(out)
        assert run.wait(PATIENCE) == 0
    assert_as_alone(out, tmp_path / "alone")


def test_a_fleet_is_seen_by_who_listens_without_any_run_folder(tmp_path: Path) -> None:
    listen = ["--listen", "tcp://127.0.0.1:*", "--page", "127.0.0.1:0"]
    with (
        command("dlag", "watch", *listen) as watch,
        laboratory(tmp_path / "run", topology="path:3", rounds=12) as lab,
    ):
        assert watch.stdout is not None
        url, *_, address = watch.stdout.readline().replace(",", "").split()[2:]
        for node in range(3):
            lab.start(node, "--watch", address)
        lab.run_to(10)  # and no further
        mesh = None
        for news in events(url):
            mesh = news.get("mesh") or mesh
            picture = news.get("picture")
            if picture is not None and picture["round"] == [10, 10, 10]:
                break
        assert mesh is not None
        assert (mesh["nodes"], mesh["edges"]) == (3, [[0, 1], [1, 2]])
        assert (
            picture["deltas"] + picture["tokens"] + picture["quiet"] == 10 * 4
        )  # two edges, both ways
        lab.finish()
        assert any(all(news["picture"]["finished"]) for news in events(url))
