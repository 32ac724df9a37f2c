"""Kafka's settings as Python's keyword arguments."""


def setting_names(settings: dict[str, object]) -> dict[str, str]:
    """Keyword arguments as Kafka's names and texts: underscores are dots, True is `true`."""
    return {
        name.replace("_", "."): str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in settings.items()
    }
