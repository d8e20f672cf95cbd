"""Engine for many machines: every worker of a Ray cluster runs a session of another engine."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...errors import PlanError
from ...schemes_db import Target
from ..runs.engine import Engine, Walks, engine_of
from ..runs.plan import Setting
from .connection import Cluster
from .session import ClusterSession
from .workers import pool_of


def engine_on(device: str, cluster: Cluster | None) -> tuple[Engine, str]:
    """Return the engine of a device of this process (cluster None) or of workers, and the text after the colon.

    Raises:
        PlanError: the device is unknown, or names GPUs where each worker of a cluster has its own.
    """
    return engine_of(device) if cluster is None else (Ray(cluster, device), "")


@dataclass(frozen=True)
class Ray:
    """Engine of workers with a core (`cpu`, `twin`) or a GPU (`cuda`) each. Ray is imported when a session starts.

    With a given number of walks on processors the finds are those of the engine `cpu`, for any number of
    workers and of worker deaths; without one each worker runs that engine's default number.

    Raises:
        PlanError: the device is unknown, or names particular GPUs.
    """

    cluster: Cluster
    device: str = "cpu"

    def __post_init__(self) -> None:
        _, places = engine_of(self.device)
        if places:
            raise PlanError(f"a worker has a GPU for itself: write --device {self.device.partition(':')[0]}")

    @property
    def inner(self) -> Engine:
        """The engine of each worker."""
        return engine_of(self.device)[0]

    @property
    def by_format(self) -> bool:
        return self.inner.by_format

    def setting(self, target: Target, walk: str) -> Setting:
        return replace(self.inner.setting(target, walk), walkers=0)

    def start(self, of: Walks, places: str = "") -> ClusterSession:
        """Start walks on all workers.

        Raises:
            PlanError: see `Engine.start`; or Ray is not installed, no cluster answers, or it is of another version.
        """
        pool = pool_of(self.cluster, gpus=self.device == "cuda")
        if not of.walkers and not self.by_format:
            own = self.inner.setting(of.starts[0].target, of.walk).walkers
            of = replace(of, walkers=own * len(pool.workers))
        return ClusterSession(pool, self.device, of, splits=not self.by_format)
