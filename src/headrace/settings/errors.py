"""What a setting's name can be refused for."""

from headrace.errors import ConfigError, HeadraceError


class UnknownSettingError(ConfigError):
    """No setting has this name. `source` says where it stands, when that was a file or the like."""

    def __init__(
        self,
        name: str,
        kind: str = "broker",
        *,
        source: str | None = None,
        suggestion: str | None = None,
    ) -> None:
        message = f"Unknown {kind} config name: {name}"
        if suggestion:
            message += f"; did you mean {suggestion}?"
        HeadraceError.__init__(self, f"{source}: {message}" if source else message)
        self.name, self.value, self.wanted, self.kind = name, None, "a known name", kind
        self.source, self.suggestion = source, suggestion
