"""Sinks as one word on the command line: `parquet:PATH`, `sqlite:PATH`, `topic:NAME`, …"""

import difflib
import importlib
import re
from collections.abc import Mapping

from headrace.pipelines.definition import Sink
from headrace.pipelines.errors import PipelineDefinitionError

# Modules are imported when a URI names them: each brings a driver or a codec along.
_MODULES = {
    "parquet": "headrace.pipelines.sinks.lake",
    "delta": "headrace.pipelines.sinks.lake",
    "topic": "headrace.pipelines.sinks.topic",
    "sqlite": "headrace.pipelines.sinks.sql",
    "postgresql": "headrace.pipelines.sinks.sql",
    "mariadb": "headrace.pipelines.sinks.sql",
    "mysql": "headrace.pipelines.sinks.sql",
    "console": "headrace.pipelines.sinks.console",
}
_SCHEME = re.compile(r"([a-z][a-z0-9+]*):", re.IGNORECASE)
EXAMPLES = (
    "parquet:PATH, delta:PATH, topic:NAME, sqlite:PATH, postgresql://…, mariadb://…, console:"
)


def parse_sink(uri: str, options: Mapping[str, str] | None = None) -> Sink:
    """The sink a URI names; what it says of itself (`?table=…`) wins over `options`."""
    match = _SCHEME.match(uri)
    if match is None:
        raise PipelineDefinitionError(f"sink {uri!r} does not say what it is; write {EXAMPLES}")
    scheme = match[1].lower()
    if scheme not in _MODULES:
        near = difflib.get_close_matches(scheme, _MODULES, 1)
        hint = f"did you mean {near[0]}:?" if near else f"write {EXAMPLES}"
        # Not the whole URI: it may hold a password.
        raise PipelineDefinitionError(f"no sink is called {scheme}:; {hint}")
    module = importlib.import_module(_MODULES[scheme])
    sink: Sink = module.from_uri(uri, options or {})
    return sink
