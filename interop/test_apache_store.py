"""A store directory that Apache RocketMQ wrote is opened by PocketMQ, and clients see the same as before."""

import json
from collections.abc import Callable
from pathlib import Path

import apache_store
import pytest
from programs import JAVA5, MissingToolError

from pocketmq.testing.process import ServerProcess


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_store_of_apache_rocketmq_is_served(
    end: str, tmp_path: Path, pytestconfig: pytest.Config, missing: Callable[[Exception], None]
) -> None:
    if pytestconfig.getoption("--apache") or pytestconfig.getoption("--against"):
        pytest.skip("this is about PocketMQ")
    try:
        JAVA5.build()
    except MissingToolError as error:
        missing(error)
    made = apache_store.make(tmp_path / "apache", end=end)

    settings = {"mappedFileSizeCommitLog": apache_store.SEGMENT_BYTES}
    with ServerProcess(made.folder, work_dir=tmp_path, settings=settings) as server:
        seen = json.loads(apache_store.play(server.namesrv, made.run, "store-dump"))
        for topic, expected in made.seen["topics"].items():
            assert seen["topics"][topic] == expected, topic
        assert seen == made.seen
        apache_store.play(server.namesrv, made.run, "store-await-pending")

        # What PocketMQ adds does not spoil what was there, and survives it being killed.
        server.kill()
        server.start()
        assert json.loads(apache_store.play(server.namesrv, made.run, "store-dump"))["topics"] == made.seen["topics"]
