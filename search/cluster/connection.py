"""Connection of this process to a Ray cluster, or to one that it starts on this machine."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import socket
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...errors import PlanError

LOCAL = "local"
"""The address of a cluster that is started on this machine and ends with the process."""

REACH_SECONDS = 5.0
"""Timeout in seconds for a connection to the head of a cluster."""

STORE_BYTES = 128 << 20
"""Shared memory of a local cluster: workers send terms and checkpoints of some megabytes."""

_connection = 0


def connection_number() -> int:
    """Return the number of the open connection of this process; actors of an earlier one no longer exist."""
    return _connection


@dataclass(frozen=True)
class Cluster:
    """Address and size of the cluster that runs the workers.

    Attributes:
        address: `local`, `auto` (the cluster that this machine is a node of), or HOST:PORT of a head.
        workers: number of workers; 0 for one a core, or one a GPU.

    Raises:
        PlanError: the address has another form, or the number is negative.
    """

    address: str = LOCAL
    workers: int = 0

    def __post_init__(self) -> None:
        host, _, port = self.address.rpartition(":")
        if self.address not in (LOCAL, "auto") and not (host and "/" not in host and port.isdigit()):
            raise PlanError(f"address {self.address!r} is not known: write auto, local or HOST:PORT of the Ray head")
        if self.workers < 0:
            raise PlanError("workers can't be negative (0: one a core, or one a GPU)")

    def connect(self) -> Any:
        """Connect this process, unless it is connected already, and return the module `ray`.

        Raises:
            PlanError: Ray is not installed, no cluster answers, or it runs another version of Ray or Python.
        """
        try:
            ray = importlib.import_module("ray")
        except ImportError:
            raise PlanError("Ray is not installed: pip install 'lcma[ray]', or leave --ray out") from None
        global _connection
        if not ray.is_initialized():
            self._probe()
            _connection += 1
            with _own_signals(), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Ray's own, about its own future
                try:
                    ray.init(**self._settings())
                except Exception as error:  # Ray raises bare RuntimeErrors, too
                    raise PlanError(f"no Ray cluster at {self.address}: {_reason(error)}") from None
            _be_quiet(ray)
        return ray

    def count(self, ray: Any, *, gpus: bool) -> int:
        """Return the number of workers to start.

        Raises:
            PlanError: the cluster has fewer GPUs than workers, or none.
        """
        resources = ray.cluster_resources()
        if gpus and resources.get("GPU", 0) < max(1, self.workers):
            found = int(resources.get("GPU", 0))
            raise PlanError(
                f"the Ray cluster at {self.address} has {found} GPUs: take --device cpu, or --workers {found}"
                if found
                else f"the Ray cluster at {self.address} has no GPU: take --device cpu"
            )
        return self.workers or max(1, int(resources.get("GPU" if gpus else "CPU", 1)))

    def place(self, *, gpus: bool, again: bool = False) -> dict[str, Any]:
        """Return the Ray options of an actor: a GPU or a core; no core on a local cluster or for a replacement.

        So any number of workers fits on this machine, and a replacement fits on a full node.
        """
        core = 0 if again or self.address == LOCAL else 1
        return {**({"num_gpus": 1} if gpus else {"num_cpus": core}), "scheduling_strategy": "SPREAD"}

    def _probe(self) -> None:
        """Reject a head that does not accept connections: Ray itself would retry for a minute, then end the process."""
        if self.address in (LOCAL, "auto"):
            return
        host, _, port = self.address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), REACH_SECONDS).close()
        except (OSError, OverflowError) as error:
            raise PlanError(
                f"no Ray cluster answers at {self.address} ({error}): start one with `ray start --head`, "
                "or take --address local"
            ) from None

    def _settings(self) -> dict[str, Any]:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no usage data leaves the machines
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        common = {"address": self.address, "log_to_driver": False, "logging_level": "ERROR"}
        if self.address != LOCAL:
            return common
        cores = max(self.workers, len(os.sched_getaffinity(0)))
        return {**common, "num_cpus": cores, "object_store_memory": STORE_BYTES, "include_dashboard": False}


def cluster_at(address: str, workers: int) -> Cluster | None:
    """Return the cluster of this address and number of workers, None for this process if there is no address.

    Raises:
        PlanError: an address of another form, or workers without one.
    """
    if workers and not address:
        raise PlanError("workers are of a cluster: give its address (local, auto, HOST:PORT)")
    return Cluster(address, workers) if address else None


def _be_quiet(ray: Any) -> None:
    """Prevent Ray from printing a page on stdout for each worker that dies; stdout may carry JSON."""
    module: Any = getattr(getattr(ray, "_private", None), "worker", None)
    if hasattr(module, "print_to_stdstream"):  # it has no setting
        module.print_to_stdstream = lambda *of, **options: None


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Restore this process's signal handlers: Ray sets one for SIGTERM that ends the process at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _reason(error: Exception) -> str:
    """Return one line of Ray's error message, which may be a page long."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if lines and lines[0].startswith("Version mismatch"):
        return " ".join(lines).replace(": The cluster", ", the cluster")
    return lines[0] if lines else type(error).__name__
