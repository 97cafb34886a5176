"""Settings come from files, the environment and options, under our names and Java's; mistakes are refused by name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pocketmq.model.errors import SettingError
from pocketmq.model.settings import Settings
from pocketmq.server.config import check_settings, describe, load_settings

Write = Callable[..., str]

BROKER_CONF = """
# as Apache RocketMQ ships it
brokerClusterName = DefaultCluster
brokerName = broker-b
brokerId = 0
deleteWhen = 04
fileReservedTime = 48
brokerRole = ASYNC_MASTER
flushDiskType = SYNC_FLUSH
syncFlushTimeout=2500
listenPort=10921
storePathCommitLog=/data/store/commitlog/
storePathRootDir=/data/store
namesrvAddr=10.0.0.1:9876;10.0.0.2:9876
"""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(text: str, name: str = "broker.conf") -> str:
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write_file


def test_a_java_broker_conf_works_as_it_is(write: Write) -> None:
    settings, warnings = load_settings(file=write(BROKER_CONF))
    assert warnings == []
    assert (settings.broker.name, settings.broker.port) == ("broker-b", 10921)
    assert (settings.store.flush, settings.store.flush_timeout_s) == ("sync", 2.5)
    assert (settings.store.retention_hours, settings.store.delete_when) == (48.0, "04")
    assert settings.store.data_dir == "/data/store"
    check_settings(settings)


def test_names_that_java_spelt_otherwise_once_are_known(write: Write) -> None:
    settings, warnings = load_settings(file=write("mapedFileSizeCommitLog=1048576\ndiskMaxUsedSpaceRatio=88\n"))
    assert warnings == [] and settings.store.segment_bytes == 1_048_576
    check_settings(settings)


def test_a_java_namesrv_conf_speaks_of_the_name_server(write: Write) -> None:
    file = write("listenPort=9999\nbindAddress=0.0.0.0\norderMessageEnable=true\n", "namesrv.conf")
    settings, _ = load_settings(file=file, prefer=("namesrv",))
    assert (settings.namesrv.port, settings.namesrv.host) == (9999, "0.0.0.0")
    assert settings.namesrv.order_message and settings.broker.port == 10911


@pytest.mark.parametrize("name", ["pocketmq.toml", "pocketmq.conf", "settings"])
def test_toml_is_known_by_its_name_or_its_sections(write: Write, name: str) -> None:
    text = '[store]\nflush = "sync"\nsegment_bytes = "64MiB"\n[http]\nport = "off"\n[broker]\nbrokerName = "b2"\n'
    settings, _ = load_settings(file=write(text, name))
    assert (settings.store.flush, settings.store.segment_bytes) == ("sync", 64 * 1024 * 1024)
    assert (settings.http.port, settings.broker.name) == (-1, "b2")


def test_toml_values_keep_their_kind_and_java_names_may_stand_alone(write: Write) -> None:
    text = 'flushDiskType = "SYNC_FLUSH"\nstore.retention_hours = 24\n[broker]\nauto_create_topic = false\n'
    settings, _ = load_settings(file=write(text, "a.toml"))
    assert settings.store.flush == "sync" and settings.store.retention_hours == 24.0
    assert settings.broker.auto_create_topic is False


def test_later_sources_win(write: Write) -> None:
    file = write("brokerName=from-file\nregionId=file\ntraceOn=false\n")
    environment = {"POCKETMQ__BROKER__NAME": "from-environment", "POCKETMQ__regionId": "environment", "PATH": "/bin"}
    settings, _ = load_settings(file=file, environment=environment, assignments=["broker.name=from-option"])
    assert settings.broker.name == "from-option"
    assert settings.broker.region == "environment"
    assert settings.broker.trace_on is False


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ({"assignments": ["store.flsh=sync"]}, "there is no setting store.flsh; did you mean store.flush"),
        ({"assignments": ["flushDiskTyp=SYNC_FLUSH"]}, "did you mean flushDiskType"),
        ({"assignments": ["store.flush"]}, "--set NAME=VALUE"),
        ({"assignments": ["transferMsgByHep=true"]}, "did you mean transferMsgByHeap"),
        ({"environment": {"POCKETMQ__STORE__FLUSHH": "sync"}}, "environment variable POCKETMQ__STORE__FLUSHH"),
        ({"assignments": ["store.flush=never"]}, "expected one of async, sync"),
        ({"assignments": ["listenPort=abc"]}, "listenPort cannot be 'abc': expected a port"),
        ({"assignments": ["store.retention_hours=abc"]}, "expected a number of hours"),
        ({"assignments": ["aclEnable=true"]}, "no access control"),
        ({"assignments": ["brokerRole=SLAVE"]}, "no replicas"),
        ({"assignments": ["enableDLegerCommitLog=true"]}, "no replicas"),
        ({"assignments": ["storePathCommitLog=/elsewhere"]}, "commitlog/ of storePathRootDir"),
        ({"file": "/does/not/exist.toml"}, "cannot be read: No such file"),
    ],
)
def test_mistakes_are_refused_in_one_sentence(source: dict[str, Any], reason: str) -> None:
    with pytest.raises(SettingError, match=reason):
        load_settings(**source)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("broker.conf", "a=1\n", r"there is no setting a.*broker\.conf, line 1"),
        ("broker.conf", "\nflushDiskType=NEVER\n", r"broker\.conf, line 2"),
        ("a.toml", "[store\n", "not valid TOML"),
        ("a.toml", "[store]\nflush = ['sync']\n", "must be a text, a number or a boolean"),
        ("a.toml", "[stoer]\nflush = 'sync'\n", "did you mean store.flush"),
        ("a.conf", "x" * 2_000_000, "larger than"),
    ],
)
def test_mistakes_in_files_are_refused_with_their_place(write: Write, name: str, text: str, reason: str) -> None:
    with pytest.raises(SettingError, match=reason):
        load_settings(file=write(text, name))


def test_java_settings_without_a_meaning_here_are_named_in_one_warning(write: Write) -> None:
    file = write("sendMessageThreadPoolNums=4\nabortFile=/a\ntransientStorePoolEnable=true\nbrokerRole=SYNC_MASTER\n")
    _, warnings = load_settings(file=file)
    assert len(warnings) == 1
    assert "sendMessageThreadPoolNums, abortFile, transientStorePoolEnable" in warnings[0]


@pytest.mark.parametrize(
    ("assignments", "reason"),
    [
        (["broker.id=1"], "no replicas"),
        (["broker.name=a b"], "a word"),
        (["broker.port=2"], "fast port"),
        (["broker.namesrv=nonsense"], "broker.namesrv"),
        (["store.disk_used_clean=95"], "must not be above"),
        (["namesrv.port=10911"], "both 10911"),
        (["http.port=10909"], "fast port"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(assignments: list[str], reason: str) -> None:
    settings, _ = load_settings(assignments=assignments)
    with pytest.raises(SettingError, match=reason):
        check_settings(settings)


def test_the_defaults_and_free_ports_are_fine() -> None:
    check_settings(Settings())
    settings, _ = load_settings(assignments=["broker.port=0", "namesrv.port=0", "http.port=0"])
    check_settings(settings)
    settings, _ = load_settings(assignments=["broker.port=off", "namesrv.port=off", "http.port=off"])
    check_settings(settings)


def test_every_setting_is_described() -> None:
    rows = {row["setting"]: row for row in describe(Settings())}
    assert rows["store.flush"]["java name"] == "flushDiskType" and rows["store.flush"]["value"] == "async"
    assert rows["store.retention_hours"]["unit"] == "h" and rows["store.retention_hours"]["live"] == "yes"
