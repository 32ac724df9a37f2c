"""Java or its jars are not there."""

from headrace.errors import EngineError


class JarError(EngineError):
    """A jar is not there, cannot be had, or is not the pinned one."""


class JavaNotFoundError(EngineError):
    """No Java on this machine is new enough."""

    def __init__(self, minimum: int, too_old: list[str]) -> None:
        found = f" (found only {', '.join(too_old)})" if too_old else ""
        super().__init__(
            f"Java {minimum} or newer is needed and was not found{found}; install it with "
            f"'apt-get install openjdk-{minimum}-jre-headless' (Debian, Ubuntu) or "
            f"'dnf install java-{minimum}-openjdk-headless' (Fedora, RHEL), or set JAVA_HOME"
        )
        self.minimum, self.too_old = minimum, too_old
