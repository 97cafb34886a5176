"""How client commands find their cluster: `--namesrv`, else the environment, else the usual port of this machine."""

import os
from typing import Annotated

from cyclopts import Parameter

DEFAULT_NAMESRV = "127.0.0.1:9876"

NamesrvOption = Annotated[
    str | None,
    Parameter(help="Name servers, HOST:PORT;HOST:PORT (default: the environment's NAMESRV_ADDR, else 127.0.0.1:9876)."),
]


def name_servers(option: str | None) -> str:
    """The address to connect to."""
    return option or os.environ.get("NAMESRV_ADDR") or DEFAULT_NAMESRV
