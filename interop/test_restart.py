"""The server is killed and started again while other clients send and receive; nothing acknowledged is lost."""

from collections.abc import Callable
from typing import Any

import pytest
from programs import CLIENTS, JAVA5, MissingToolError, Program, Run

WORKING_TIMEOUT_S = 60.0


@pytest.mark.parametrize(
    ("program", "end"),
    [*((program, "kill") for program in CLIENTS), (JAVA5, "stop")],
    ids=lambda value: value.name if isinstance(value, Program) else value,
)
def test_restart_in_the_middle(
    program: Program,
    end: str,
    start_server: Callable[[], Any],
    run_name: Callable[[Program], str],
    missing: Callable[[Exception], None],
) -> None:
    try:
        program.build()
    except MissingToolError as error:
        missing(error)
    server = start_server()
    run = Run(program, server.namesrv, run_name(program), ["restart"])
    if run.wait_for("RUNNING", WORKING_TIMEOUT_S):
        getattr(server, end)()
        server.start()
        run.say("the server is back")
    played = run.finish()
    report = played.reports.get("special", {"ok": False, "detail": f"no report; errors:\n{played.errors}"})
    assert report["ok"], report["detail"]
    server.stop()
