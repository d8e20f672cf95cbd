"""A process of low priority that finds the best candidates of a request, and compiles them into the caches.

Messages are pickled, over pipes between a process and its own child.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any, BinaryIO, cast

from .planning.machine import Machine
from .planning.profile import Profile
from .planning.strategy import Plan
from .planning.trials.lesson import CONTENDERS
from .planning.wisdom import CandidateKey
from .request import Request

LISTED = 24
"""Best candidates by prediction, of which those that are compiled are chosen."""

ALIKE = 1.06
"""Of the candidates within this ratio of the best predicted seconds the one with the least code is compiled first."""

NEAR = 1.1
"""Later candidates are within this ratio of the best predicted seconds."""

LONGEST_SILENCE = 600.0
"""Seconds for one candidate: a compiler that hangs would end the learning of all classes."""

NICENESS = 15
"""Beside products on all processors the process gets about 3% of one: so much may learning cost. A thread of the same
kind would hold Python's lock while it waits for a processor."""


@dataclass(frozen=True)
class CompileTask:
    """A request, and what candidates are predicted by; `target` is that of Triton for a GPU.

    `rounds`: the number of times that candidates were asked for, this one included.
    """

    request: Request
    profile: Profile
    threads: int
    index: int
    free: float
    target: tuple[str, Any, int] | None
    rounds: int = 1


class CompileProcess:
    """Starts the process when it is first asked, and again if it has ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def candidates(self, request: Request, machine: Machine, rounds: int = 1) -> Iterator[tuple[CandidateKey, float]]:
        """Yield the key of each candidate of a request as soon as it is compiled; none if the process ends.

        With each come the processor seconds that it took. `rounds` as in `CompileTask`.
        """
        target = None
        if request.device == "cuda":
            from .cuda.precompile import target as current

            target = (now := current()).backend, now.arch, now.warp_size
        task = CompileTask(
            request, machine.profile, machine.threads, machine.index, float(machine.free_bytes()), target, rounds
        )
        try:
            process = self._process = self._process or _started()
            with _connection(cast(BinaryIO, process.stdin), False) as tasks:
                tasks.send(task)
            with _connection(cast(BinaryIO, process.stdout), True) as answers:
                while (found := _received(answers)) is not None:
                    yield found
        except (OSError, EOFError, pickle.UnpicklingError, subprocess.SubprocessError):
            self.close()

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the process within a with block: what is timed there has the processors for itself. POSIX only."""
        process = self._process
        if process is None:
            yield
            return
        process.send_signal(signal.SIGSTOP)  # nothing is sent to a process that has ended
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End the process; what it has compiled stays in the caches."""
        process, self._process = self._process, None  # the thread that waits for an answer closes it, too
        if process is not None:
            with contextlib.suppress(OSError):
                process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):  # what it did not read is lost
                    cast(BinaryIO, pipe).close()


def _started() -> subprocess.Popen[bytes]:
    # The child must find the modules of this process, and no others in its working directory.
    path = os.pathsep.join(filter(None, sys.path))
    # OpenBLAS's threads would spin for 0.1 s when it is loaded: on 16 cores calls took twice as long in that second.
    quiet = {"LCMA_LEARN": "0", "OPENBLAS_THREAD_TIMEOUT": "4"}
    environment = {**os.environ, "PYTHONPATH": path, **quiet}
    # Of low priority before it imports anything, which takes half a second of processor time.
    code = f"""
import contextlib, os
with contextlib.suppress(OSError, AttributeError):
    os.nice({NICENESS})
from {__name__} import main
main()
"""
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    atexit.register(process.kill)
    return process


def _connection(pipe: BinaryIO, reads: bool) -> Connection:
    """Return one end of a pipe for pickled objects; closing it leaves the pipe open."""
    return Connection(os.dup(pipe.fileno()), readable=reads, writable=not reads)


def _received(answers: Connection) -> Any:
    """Return the next message.

    Raises:
        EOFError: the process has ended, or is silent for too long.
    """
    if not answers.poll(LONGEST_SILENCE):
        raise EOFError
    return answers.recv()


def best_plans(task: CompileTask) -> list[Plan]:
    """Return the plans of the candidates to try: one that is soon compiled, then the best by prediction.

    Each differs from those before it in its strategy and method, or in its levels. Those of the last round are NEAR
    the best.
    """
    from .planning.planner import candidates
    from .plans.families import strategies

    plans = candidates(task.request, _machine(task), strategies(task.request.device, task.request.family), LISTED)
    others = [plan for plan in plans if not plan.strategy.baseline]
    best = min((plan.seconds for plan in others if plan.seconds), default=0.0)
    numbers = CONTENDERS[task.request.device]
    most = numbers[task.rounds - 1] if best < (plans[0].seconds or 0.0) else 1
    near = [plan for plan in others if plan.seconds and plan.seconds < ALIKE * best]
    chosen = [min(near, key=_code)] if near else []
    for plan in others:
        settings = {(one.candidate.strategy, one.candidate.method) for one in chosen}
        new = (plan.candidate.strategy, plan.candidate.method) not in settings
        if len(chosen) < most and (new or all(plan.label != one.label for one in chosen)):
            chosen.append(plan)
    return (
        chosen if task.rounds < len(numbers) else [one for one in chosen if one.seconds and one.seconds < NEAR * best]
    )


def _code(plan: Plan) -> int:
    """Return the products of the schemes whose sums are to be compiled, each scheme once."""
    levels = {(str(one.target), one.rank) for one in _programs(plan.candidate.program)}
    return sum(rank for _, rank in levels)


def _programs(program: Any) -> Iterator[Any]:
    if program is not None:
        yield program
        for _, inner in program.inner:
            yield from _programs(inner)


def _machine(task: CompileTask) -> Machine:
    """Return the machine of a task, with the schemes of the compact pool."""
    from .dense.pool import compact_pool

    schemes = compact_pool()
    if task.request.device == "cpu":
        from .cpu.machine import cpu_machine

        return replace(cpu_machine(profile=task.profile, threads=task.threads), wisdom=None, schemes=schemes)
    from .cuda.cost_model import CudaCostModel

    costs = CudaCostModel(task.profile)
    return Machine("cuda", task.profile, costs, index=task.index, free_bytes=lambda: task.free, schemes=schemes)


def _compile(plan: Plan) -> None:
    if plan.request.device == "cpu":
        plan.build()
        return
    from .cuda.bench import CudaBench

    CudaBench().precompile([plan], lambda line: None)


def _key(plan: Plan) -> CandidateKey:
    """Return the key of a plan's candidate, which names torch if that is the faster library of its products."""
    family, strategy, source, parameters = plan.candidate.key
    if plan.request.device == "cpu" and family == "dense" and dict(parameters).get("method", "tasks") != "tasks":
        name = plan.machine.profile.backend(plan.request.dtype, *plan.request.shape)
        parameters = tuple(sorted({**dict(parameters), "library": name}.items())) if name == "torch" else parameters
    return family, strategy, source, parameters


def main() -> None:
    """Answer tasks until the input ends: for each the candidates, each when it is compiled, then None."""
    tasks, answers = _connection(sys.stdin.buffer, True), _connection(sys.stdout.buffer, False)
    os.dup2(2, 1)  # the compiler may print
    used = 0.0  # what is imported counts with the first candidate
    with contextlib.suppress(EOFError):
        while True:
            task: CompileTask = tasks.recv()
            if task.target is not None:
                from .cuda.precompile_worker import OfflineDriver

                OfflineDriver.activate(*task.target)
            plans: list[Plan] = []
            with contextlib.suppress(Exception):  # the parent goes on without candidates
                plans = best_plans(task)
            for plan in plans:
                with contextlib.suppress(Exception):  # the parent compiles what is missing when it loads the code
                    _compile(plan)
                before, used = used, time.process_time()
                answers.send((_key(plan), used - before))
            answers.send(None)
