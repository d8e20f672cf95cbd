"""A stand-in for the module `ray`: actors run in this process, and die when told to."""

from types import SimpleNamespace


class RayError(Exception):
    """The base of what Ray raises."""


class RayActorError(RayError):
    """An actor is dead."""


class ObjectLostError(RayError):
    """A result is lost."""


class RayTaskError(RayError):
    """The error that an actor's method raised."""

    def __init__(self, cause):
        super().__init__(str(cause))
        self.cause = cause


class FakeRay:
    """`deadly` counts down: the call at which it comes to 0 kills its actor."""

    exceptions = SimpleNamespace(
        RayError=RayError, RayActorError=RayActorError, ObjectLostError=ObjectLostError, RayTaskError=RayTaskError
    )

    def __init__(self, deadly=()):
        self.deadly = list(deadly)
        self.calls = 0
        self.made = 0

    def remote(self, kind):
        return SimpleNamespace(options=lambda **resources: SimpleNamespace(remote=lambda: _Actor(self, kind())))

    def get(self, result):
        if isinstance(result, RayError):
            raise result
        return result

    def kill(self, actor):
        actor.dead = True


class _Actor:
    def __init__(self, ray, played):
        ray.made += 1
        self._ray, self._played, self.dead = ray, played, False

    def __getattr__(self, method):
        return SimpleNamespace(remote=lambda *arguments: self._called(method, arguments))

    def _called(self, method, arguments):
        self._ray.calls += 1
        if self._ray.calls in self._ray.deadly:
            self.dead = True
        if self.dead:
            return RayActorError("dead")
        try:
            return getattr(self._played, method)(*arguments)
        except Exception as error:
            return RayTaskError(error)
