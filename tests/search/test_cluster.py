"""Searches on the workers of a cluster: workers that die, clusters that do not answer, runs that go on."""

import importlib
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from lcma.errors import PlanError
from lcma.schemes_db import parse_target
from lcma.search import Walks, find, pack_start, resume, status, walk_policy
from lcma.search.cluster.connection import Cluster
from lcma.search.cluster.engine import ClusterSession
from lcma.search.cluster.workers import Worker, WorkerLostError, WorkerPool, await_places, pool_of
from lcma.search.improve.events import Kept
from lcma.search.improve.run import improve
from lcma.search.runs.engine import engine_of

from ..refusal import refuses, refuses_with
from .fake_ray import FakeRay, RayActorError

COURSE = {"rank": 23, "ring": "Z2", "seed": 1, "walks": 6, "steps": 20_000, "rounds": 40, "count": 8}


def session_of(ray, sizes=3, walks=5):
    """A session of some walks on workers that run in this process."""
    pool = SimpleNamespace(workers=[Worker(ray, Cluster(), gpu=False) for _ in range(sizes)], owner=None)
    start = pack_start("flip", parse_target("3x3x3"))
    return ClusterSession(pool, "cpu", Walks("flip", [start], walk_policy("flip"), 3, 2, walks), splits=True)


def walked(session, rounds=4):
    """Return the states of walks after some rounds, with some walks sent and rewound."""
    start = pack_start("flip", parse_target("3x3x3"))
    goals = np.full(session.walkers, 23)
    for number in range(rounds):
        session.advance(goals, 3000, None)
        if number == 1:
            session.rewind(np.array([0, 3]))
        if number == 2:
            session.send(np.array([1, 4]), [start, start], np.array([0, 1]))
    everyone = np.arange(session.walkers)
    words = [terms.words.tolist() for terms in session.terms(everyone)]
    return session.ranks.tolist(), session.lowest.tolist(), session.flips, session.steps(everyone).tolist(), words


def alone():
    """The same walks in this process."""
    start = pack_start("flip", parse_target("3x3x3"))
    engine, places = engine_of("cpu")
    return engine.start(Walks("flip", [start], walk_policy("flip"), 3, 2, 5), places)


def test_workers_walk_as_one_process_does():
    expected = walked(alone())
    assert expected[2] > 10_000
    for sizes in (1, 2, 3, 9):
        assert walked(session_of(FakeRay(), sizes)) == expected


@pytest.mark.parametrize("deadly", [[9], [11, 12, 13], [16, 30, 31, 44], [20, 22, 24, 60]])
def test_workers_that_die_lose_nothing(deadly):
    ray = FakeRay(deadly)
    session = session_of(ray)
    assert walked(session) == walked(alone())
    assert sum(worker.deaths for worker in session._workers) == ray.made - 3 >= 1


def test_a_snapshot_shortens_what_a_new_worker_repeats(monkeypatch):
    from lcma.search.cluster import engine as module

    monkeypatch.setattr(module, "SNAPSHOT_SECONDS", 0.0)
    monkeypatch.setattr(module, "SNAPSHOT_SHARE", 0)
    ray = FakeRay()
    session = session_of(ray)
    goals = np.full(5, 23)
    for _ in range(6):
        session.advance(goals, 1000, None)
    before = ray.calls
    ray.deadly = [before + 1]
    session.advance(goals, 1000, None)
    # Three workers advance; the new one has start, checkpoint and one round; three snapshots.
    assert ray.calls - before == 3 + 3 + 3
    plain = alone()
    for _ in range(7):
        plain.advance(goals, 1000, None)
    assert session.ranks.tolist() == plain.ranks.tolist()
    assert session.flips == plain.flips


def test_checkpoints_go_on_with_another_number_of_workers():
    first = session_of(FakeRay(), 3)
    goals = np.full(5, 23)
    first.advance(goals, 3000, None)
    arrays = first.to_arrays()
    second = session_of(FakeRay(), 2)
    second.take_arrays(arrays)
    for session in (first, second):
        session.advance(goals, 3000, None)
    assert first.ranks.tolist() == second.ranks.tolist()
    assert (first.flips, first.lowest.tolist()) == (second.flips, second.lowest.tolist())
    refuses("resume it with --workers 3", session_of(FakeRay(), 2, walks=4).take_arrays, arrays)


def test_a_worker_that_always_dies_is_given_up():
    ray = FakeRay()
    session = session_of(ray)
    ray.deadly = range(ray.calls + 1, 10_000)
    refuses_with(WorkerLostError, "died 5 times in one call", session.advance, np.full(5, 23), 100, None)


def test_workers_of_a_later_session_are_its_own():
    ray = FakeRay()
    session = session_of(ray)
    session._pool.owner = object()
    refuses("taken these workers over", session.advance, np.full(5, 23), 100, None)


def test_nodes_of_other_code_are_refused():
    ray = FakeRay()
    ray.wait = lambda refs, num_returns, timeout: (refs, [])
    refuses("other code of lcma", await_places, ray, ["0123456789abcdef"], "")
    with pytest.raises(PlanError, match="install the same lcma"):
        await_places(ray, [RayActorError("page\nModuleNotFoundError: No module named 'lcma'\n")], "")
    ray.wait = lambda refs, num_returns, timeout: (refs[:1], refs[1:])
    refuses_with(WorkerLostError, "no place: 1 of 2 started", await_places, ray, ["a", "b"], "no place")


def test_clusters_that_are_not_there_are_refused(monkeypatch):
    played = SimpleNamespace(is_initialized=lambda: False)
    monkeypatch.setattr(importlib, "import_module", lambda name: played)
    refuses("no Ray cluster answers at localhost:1 ", Cluster("localhost:1").connect)

    def other(**settings):
        raise RuntimeError(
            "Version mismatch: The cluster was started with:\n    Ray: 2.50.0\n    Python: 3.12.1\n"
            "This process on node 10.0.0.1 was started with:\n    Ray: 2.60.0\n"
        )

    played.init = other
    refuses(r"at auto: Version mismatch, the cluster .*2\.50\.0 .*2\.60\.0$", Cluster("auto").connect)
    played.cluster_resources = lambda: {"CPU": 8.0, "GPU": 2.0}
    assert Cluster().count(played, gpus=False) == 8
    assert Cluster("auto", 2).count(played, gpus=True) == 2
    refuses("has 2 GPUs", Cluster("auto", 3).count, played, gpus=True)
    played.cluster_resources = lambda: {"CPU": 8.0}
    refuses("has no GPU: take --device cpu", Cluster().count, played, gpus=True)


def test_ray_may_be_absent(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    refuses(r"pip install 'lcma\[ray\]'", find, "3x3x3", **COURSE, address="local")
    refuses(r"pip install 'lcma\[ray\]'", improve, ["3x5x6"], address="local")


@pytest.fixture(scope="class")
def cluster():
    """A cluster of two workers on this machine, ended after the tests of it: it takes seconds to start."""
    ray = pytest.importorskip("ray")
    yield Cluster("local", 2)
    ray.shutdown()


def process_of(worker):
    """The id of a worker's process."""
    ray = pytest.importorskip("ray")
    return ray.get(worker._actor.__ray_call__.remote(lambda actor: os.getpid()))


def digests(result):
    return [found.scheme.digest for found in result.finds]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray leaves files and processes to be collected
class TestRay:
    def test_finds_are_those_of_threads(self, cluster):
        for more in ({}, {"walk": "flip-c3"}):
            course = {**COURSE, **more}
            ours = find("3x3x3", **course, address="local", workers=2)
            plain = find("3x3x3", **course)
            assert digests(ours) == digests(plain) != []
            assert (ours.flips, ours.rounds, ours.ranks) == (plain.flips, plain.rounds, plain.ranks)
        many = find("3x3x3", rank=23, ring="Z2", seed=1, rounds=2, address="local", workers=2)
        assert sum(many.ranks.values()) == 2 * sum(find("3x3x3", rank=23, ring="Z2", seed=1, rounds=2).ranks.values())

    def test_killed_workers_lose_nothing(self, cluster):
        def kill(run_status):
            if run_status.round % 2:
                os.kill(process_of(pool_of(cluster, gpus=False).workers[run_status.round % 4 // 2]), signal.SIGKILL)

        ours = find("3x3x3", **COURSE, address="local", workers=2, on_event=kill)
        assert digests(ours) == digests(find("3x3x3", **COURSE))
        assert sum(worker.deaths for worker in pool_of(cluster, gpus=False).workers) >= 2

    def test_the_gpu_walk_runs_on_workers(self, cluster):
        course = {"rank": 7, "ring": "Z2", "device": "twin", "walks": 64, "steps": 300, "rounds": 40, "count": 3}
        found = [find("2x2x2", **course, seed=1, address="local", workers=2) for _ in range(2)]
        assert len(found[0].finds) == 3
        assert digests(found[0]) == digests(found[1])

    def test_a_run_continues_when_the_head_is_killed(self, cluster, tmp_path):
        folder = tmp_path / "run"
        words = "search 3x3x3 --rank 22 --ring Z2 --seed 1 --walks 4 --steps 50000 --rounds 100000 --time 10m --out"
        command = [sys.executable, "-m", "lcma", *words.split(), str(folder), "--ray", "local", "--workers", "2"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path) as process:
            deadline = time.monotonic() + 120
            while not (folder / "state.npz").exists() and time.monotonic() < deadline:
                time.sleep(0.2)
            process.kill()
        kept = status(folder)
        assert kept.round > 0
        ours = resume(folder, rounds=kept.round + 3, workers=1)
        plain = find("3x3x3", **{**COURSE, "rank": 22, "walks": 4, "steps": 50_000, "rounds": kept.round + 3})
        assert (ours.rounds, ours.flips, ours.ranks) == (plain.rounds, plain.flips, plain.ranks)

    @pytest.mark.parametrize("device", ["cpu", "twin"])
    def test_improvements_take_turns_side_by_side(self, cluster, warm_home, monkeypatch, device):
        from lcma.search.improve import catalogue

        monkeypatch.setattr(catalogue, "kept_ranks", lambda catalog, over: {})
        deaths = []
        take = WorkerPool.run_turns

        def run(pool, turns, seconds, on_report, stop):
            if not deaths:
                os.kill(process_of(pool.workers[0]), signal.SIGKILL)
            take(pool, turns, seconds, on_report, stop)
            deaths.append(sum(worker.deaths for worker in pool.workers))

        monkeypatch.setattr(WorkerPool, "run_turns", run)
        ranks = set()
        result = improve(
            ["2x2x3", "2x2x2"],
            ring="Z2",
            seconds=240,
            device=device,
            address="local",
            workers=2,
            on_event=lambda event: ranks.add(event.scheme.rank) if isinstance(event, Kept) else None,
            stop=lambda: ranks >= {7, 11},
        )
        assert {scheme.rank for scheme in result.kept} >= {7, 11}
        assert result.interrupted
        assert deaths[-1] >= 1
