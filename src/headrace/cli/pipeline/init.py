"""`headrace pipeline init`: a new pipeline to start from, with its test."""

from pathlib import Path
from typing import Annotated

import typer

EPILOG = "Example: headrace pipeline init hot_sensors --dir pipelines"


def init(
    name: Annotated[str, typer.Argument(help="Name of the new pipeline, as Python's names are.")],
    is_yaml: Annotated[
        bool, typer.Option("--yaml", help="A YAML file with SQL instead of Python.")
    ] = False,
    directory: Annotated[
        Path, typer.Option("--dir", metavar="DIR", help="Where to write it.", show_default=".")
    ] = Path(),
) -> None:
    """Write a pipeline that works and its test; no file is overwritten."""
    from headrace.pipelines.skeleton import EXAMPLE_FEED, skeleton, write_skeleton

    made = skeleton(name, directory, is_yaml=is_yaml)
    write_skeleton(made)
    for path in made.files:
        print(f"wrote {path}")
    test = next(path for path in made.files if path != made.pipeline)
    run = f"headrace pipeline run {made.pipeline}"
    print(f"test it: pytest {test}")
    print(f"feed it: {EXAMPLE_FEED}")
    print(f"look at it: {run} --to console: --trigger available-now")
    print(f"run it: {run}")
