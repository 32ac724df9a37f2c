"""A pipeline's definition once it is found: what it is called, what it takes, how to build it.

Whether it was a Python module or a YAML file makes no difference from here on.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType

from headrace.pipelines.definition import Decoder, Option, Pipeline, Sink, unchanged
from headrace.pipelines.errors import PipelineDefinitionError
from headrace.pipelines.source import TopicSource

# A pipeline's name is also that of a consumer group, a directory and a part of a topic's name.
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_NO_SUMMARY = "(its module has no docstring)"

Make = Callable[[Mapping[str, str], TopicSource, tuple[Sink, ...]], Pipeline]


@dataclass(frozen=True, kw_only=True)
class PipelineModule:
    """One definition. With a `problem` it cannot be built."""

    name: str
    summary: str
    origin: str  # shipped, installed by something, or a path
    options: tuple[Option, ...] = ()
    source: TopicSource | None = None
    sinks: tuple[Sink, ...] = ()
    problem: str | None = None
    make: Make | None = None

    def build(
        self,
        options: Mapping[str, str] | None = None,
        source: TopicSource | None = None,
        sinks: Iterable[Sink] = (),
    ) -> Pipeline:
        """The pipeline with these options; what `source` and `sinks` say wins over its own."""
        if self.problem is not None or self.make is None:
            raise PipelineDefinitionError(self.problem or f"pipeline {self.name} has no definition")
        chosen = (source or TopicSource()).over(self.source or TopicSource())
        pipeline = self.make(self._filled_in(options or {}), chosen, tuple(sinks) or self.sinks)
        if isinstance(pipeline.source, TopicSource) and pipeline.source.is_empty:
            raise PipelineDefinitionError(
                f"pipeline {self.name} has no topics; name them with --topic or --pattern"
            )
        if not pipeline.sinks:
            raise PipelineDefinitionError(
                f"pipeline {self.name} has no sink; name one with --to, such as --to console:"
            )
        return pipeline

    def _filled_in(self, given: Mapping[str, str]) -> dict[str, str]:
        known = {option.name: option for option in self.options}
        for name in given:
            if name not in known:
                raise PipelineDefinitionError(
                    f"pipeline {self.name} has no option {name}{suggestion(name, known)}"
                )
        for option in self.options:
            if option.is_required and option.name not in given:
                raise PipelineDefinitionError(
                    f"pipeline {self.name} needs --option {option.name}=…: {option.help}"
                )
        defaults = {each.name: each.default for each in self.options if each.default is not None}
        return {**defaults, **given}


def from_module(module: ModuleType, name: str, origin: str) -> PipelineModule:
    """Read a Python module's definition; PipelineDefinitionError if it has none."""
    name = str(getattr(module, "NAME", name))
    check_name(name, origin)
    summary = (module.__doc__ or _NO_SUMMARY).strip().partition("\n")[0]
    source = getattr(module, "SOURCE", None)
    if source is not None and not isinstance(source, TopicSource):
        raise PipelineDefinitionError(f"{origin}: SOURCE is {source!r}; make it a TopicSource")
    sinks = getattr(module, "SINKS", ())
    if isinstance(sinks, Sink):
        sinks = (sinks,)
    options = tuple(getattr(module, "OPTIONS", ()))
    function = getattr(module, "pipeline", None)
    if function is None and options:
        raise PipelineDefinitionError(
            f"{origin}: OPTIONS need a function pipeline(options, source, sinks) that takes them"
        )
    if function is None and not any(
        hasattr(module, word) for word in ("SOURCE", "DECODER", "transform")
    ):
        raise PipelineDefinitionError(
            f"{origin} defines no pipeline; give it SOURCE, DECODER, SINKS and transform(rows), "
            "or a function pipeline(options, source, sinks)"
        )

    def make_from_constants(
        options: Mapping[str, str], source: TopicSource, sinks: tuple[Sink, ...]
    ) -> Pipeline:
        from headrace.pipelines.decoders import Raw

        decoder: Decoder = getattr(module, "DECODER", None) or Raw()
        return Pipeline(
            name=name,
            summary=summary,
            source=source,
            decoder=decoder,
            sinks=sinks,
            transform=getattr(module, "transform", unchanged),
            dead_letter_topic=getattr(module, "DEAD_LETTER_TOPIC", None),
        )

    return PipelineModule(
        name=name,
        summary=summary,
        origin=origin,
        options=options,
        source=source,
        sinks=tuple(sinks),
        make=function or make_from_constants,
    )


def check_name(name: str, origin: str) -> None:
    """Raise PipelineDefinitionError for a name that could not be a group's or a directory's."""
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise PipelineDefinitionError(
            f"{origin}: {name!r} is no name for a pipeline; "
            "write at most 100 letters, digits, dots, underscores and dashes"
        )


def suggestion(word: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown word: what was meant, or what there is."""
    names = list(known)
    if near := difflib.get_close_matches(word, names, 1):
        return f"; did you mean {near[0]}?"
    return f"; it has {', '.join(names)}" if names else "; it has none"
