"""`pocketmq config`: every setting, as this process would run with it."""

import os
from typing import Annotated

from cyclopts import Parameter

from pocketmq.cli.output import Output, show


def config(
    filter: str | None = None,
    *,
    config: str | None = None,
    set_: Annotated[list[str] | None, Parameter(name="--set", negative=())] = None,
    output: Output = "table",
) -> int:
    """Print all settings: value, default, unit, Java name, whether it may change while a broker runs, meaning.

    Exit code 1 when no setting has to do with the word.

    Parameters
    ----------
    filter
        Show only settings whose name or meaning holds this.
    config
        Settings file to apply first.
    set_
        NAME=VALUE to apply.
    output
        table or json.
    """
    from pocketmq.server.config import describe, load_settings

    settings, _ = load_settings(file=config, environment=os.environ, assignments=set_ or ())
    rows = [
        row
        for row in describe(settings)
        if not filter or any(filter.lower() in row[column].lower() for column in ("setting", "java name", "meaning"))
    ]
    show(rows, output)
    return 0 if rows else 1
