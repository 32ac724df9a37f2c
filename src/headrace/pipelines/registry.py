"""Finding pipelines: those shipped here, those other packages install, and files.

A package offers one by an entry point of the group `headrace.pipelines` that names its module.
One that cannot be loaded takes no other with it: it is listed with the reason.
"""

import importlib
import importlib.util
import os
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

from headrace.errors import HeadraceError
from headrace.pipelines import shipped
from headrace.pipelines.definition import Pipeline, Sink
from headrace.pipelines.definition_module import PipelineModule, from_module, suggestion
from headrace.pipelines.errors import PipelineDefinitionError
from headrace.pipelines.sinks.uri import parse_sink
from headrace.pipelines.source import TopicSource
from headrace.pipelines.yaml_pipeline import load_yaml

GROUP = "headrace.pipelines"
SHIPPED = "shipped"
_YAML = (".yaml", ".yml")
_FILES = (".py", *_YAML)


def all_pipelines() -> list[PipelineModule]:
    """Every pipeline that has a name, by name; a broken one has its `problem` set."""
    own = {name: _load_shipped(name) for name in _shipped_names()}
    others = [_load_entry_point(point) for point in _installed()]
    counts = dict[str, int]()
    for each in others:
        counts[each.name] = counts.get(each.name, 0) + 1
    listed = list(own.values())
    for each in others:
        if each.name in own:
            each = _broken(each, f"{each.origin}: the name {each.name} belongs to a shipped one")
        elif counts[each.name] > 1:
            each = _broken(each, f"{each.origin}: another installed pipeline has the same name")
        listed.append(each)
    return sorted(listed, key=lambda each: (each.name, each.origin != SHIPPED, each.origin))


def find(name_or_path: str) -> PipelineModule:
    """The pipeline of this name or in this file; PipelineDefinitionError if there is none."""
    if name_or_path.endswith(_FILES) or os.sep in name_or_path:
        return _sound(_load_file(Path(name_or_path)))
    if name_or_path in _shipped_names():
        return _sound(_load_shipped(name_or_path))
    found = [_load_entry_point(point) for point in _installed() if point.name == name_or_path]
    if len(found) > 1:
        origins = " and ".join(each.origin for each in found)
        raise PipelineDefinitionError(
            f"two pipelines are called {name_or_path}: {origins}; uninstall one or give its path"
        )
    if found:
        return _sound(found[0])
    known = [*_shipped_names(), *(point.name for point in _installed())]
    hint = suggestion(name_or_path, known).replace("it has", "there are")
    raise PipelineDefinitionError(
        f"there is no pipeline {name_or_path}{hint} A file's name ends in .py or .yaml"
        if hint.endswith("?")
        else f"there is no pipeline {name_or_path}{hint}; a file's name ends in .py or .yaml"
    )


def load_pipeline(
    name_or_path: str | Path,
    *,
    source: TopicSource | str | None = None,
    sinks: Iterable[Sink | str] = (),
    options: Mapping[str, str] | None = None,
) -> Pipeline:
    """The pipeline of this name or in this file, ready to run.

        load_pipeline("archive", source="orders", sinks=["parquet:lake"])

    What is said here wins over its own. A source may be a topic's name, a sink what `--to` takes.
    """
    options = dict(options or {})
    module = find(str(name_or_path))
    named = TopicSource(topics=(source,)) if isinstance(source, str) else source
    made = [parse_sink(each, options) if isinstance(each, str) else each for each in sinks]
    return module.build(options, named, made)


def _sound(module: PipelineModule) -> PipelineModule:
    if module.problem is not None:
        raise PipelineDefinitionError(module.problem)
    return module


def _broken(module: PipelineModule, problem: str) -> PipelineModule:
    return PipelineModule(
        name=module.name, summary=module.summary, origin=module.origin, problem=problem
    )


def _shipped_names() -> list[str]:
    return sorted(
        each.name
        for each in pkgutil.iter_modules(shipped.__path__)
        if not each.name.startswith("_") and not each.ispkg
    )


def _installed() -> Iterator[EntryPoint]:
    yield from sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))


def _load_shipped(name: str) -> PipelineModule:
    path = f"{shipped.__name__}.{name}"
    return _load(name, SHIPPED, lambda: importlib.import_module(path))


def _load_entry_point(point: EntryPoint) -> PipelineModule:
    owner = point.dist.name if point.dist is not None else point.value
    return _load(point.name, f"installed by {owner}", point.load)


def _load_file(path: Path) -> PipelineModule:
    if not path.is_file():
        raise PipelineDefinitionError(
            f"there is no file {path}; 'headrace pipeline init NAME' writes one to start from"
        )
    if path.suffix in _YAML:
        return load_yaml(path)
    if path.suffix != ".py":
        raise PipelineDefinitionError(f"{path} is no pipeline; its name must end in .py or .yaml")
    return _load(path.stem, str(path), lambda: _import_file(path))


def _load(name: str, origin: str, load: Callable[[], object]) -> PipelineModule:
    try:
        module = load()
        if not isinstance(module, ModuleType):
            raise PipelineDefinitionError(f"{origin}: pipeline {name} is no module but {module!r}")
        return from_module(module, name, origin)
    except (Exception, SystemExit) as error:  # whatever a stranger's module may raise
        problem = str(error) if isinstance(error, HeadraceError) else _reason(origin, name, error)
        return PipelineModule(
            name=name, summary="(cannot be loaded)", origin=origin, problem=problem
        )


def _import_file(path: Path) -> ModuleType:
    """Run the file as a module that Spark's workers are sent by value: they cannot import it."""
    module_name = f"headrace_pipeline_{path.stem}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses look their module up while it is run
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[module_name]  # cloudpickle sends what it does not find here
    return module


def _reason(origin: str, name: str, error: BaseException) -> str:
    """Where and why a module failed, in one sentence."""
    what = f"{type(error).__name__}: {error}".strip().splitlines()[0]
    if isinstance(error, SyntaxError):
        return f"pipeline {name} ({origin}), line {error.lineno}: {error.msg}"
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename != __file__ and "importlib" not in frame.filename
    ]
    where = f", {Path(frames[-1].filename).name} line {frames[-1].lineno}" if frames else ""
    return f"pipeline {name} ({origin}){where}: {what}"
