"""What ends a pipeline, or keeps it from starting."""

from pathlib import Path

from headrace.errors import HeadraceError


class PipelineError(HeadraceError):
    """A pipeline cannot be found, started or gone on with; the message names the fix."""


class PipelineDefinitionError(PipelineError):
    """A pipeline's module, YAML file or options make no sense."""


class SparkError(PipelineError):
    """Spark cannot be set up, started or asked. `log_file` holds what Java said."""

    def __init__(self, message: str, log_file: Path | None = None) -> None:
        super().__init__(f"{message} (details in {log_file})" if log_file else message)
        self.log_file = log_file


class SourceError(PipelineError):
    """There is no broker, no topic, or the wanted positions are gone."""


class SinkError(PipelineError):
    """A lake, table or topic does not take what it is given."""


class RunError(PipelineError):
    """A checkpoint is in use, or there is no such run."""
