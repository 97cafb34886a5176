"""Settings are found by each of their names, and values are read in the unit that the name implies."""

import pytest

from pocketmq.model import setting_table
from pocketmq.model.errors import SettingError
from pocketmq.model.settings import Settings


def read(name: str, value: setting_table.Value) -> setting_table.Value:
    row, java = setting_table.find(name)
    return setting_table.read_value(row, value, java=java)


def test_every_setting_is_documented_and_has_names_of_its_own() -> None:
    rows = setting_table.rows()
    assert len({row.name for row in rows}) == len(rows)
    assert all(row.doc.endswith(".") for row in rows)
    assert len({(row.section, row.java) for row in rows if row.java}) == sum(row.java is not None for row in rows)


def test_every_default_is_read_back_from_its_own_text_under_both_names() -> None:
    for row in setting_table.rows():
        assert setting_table.read_value(row, setting_table.write_value(row, row.default)) == row.default
        text = setting_table.write_value(row, row.default, java=True)
        assert setting_table.read_value(row, text, java=True) == row.default


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("store.flush", "sync", "sync"),
        ("flushDiskType", "SYNC_FLUSH", "sync"),
        ("flushDiskType", "ASYNC_FLUSH", "async"),
        ("syncFlushTimeout", "5000", 5.0),
        ("store.flush_timeout_s", "500ms", 0.5),
        ("store.flush_timeout_s", 2, 2.0),
        ("timerMaxDelaySec", "259200", 259200.0),
        ("fileReservedTime", "48", 48.0),
        ("store.retention_hours", "3d", 72.0),
        ("diskMaxUsedSpaceRatio", "80", 80.0),
        ("store.segment_bytes", "64MiB", 64 * 1024 * 1024),
        ("mappedFileSizeCommitLog", "1073741824", 1 << 30),
        ("http.port", "off", -1),
        ("autoCreateTopicEnable", "false", False),
        ("broker.auto_create_topic", True, True),
        ("brokerName", " b1 ", "b1"),
        ("broker.name", 4, "4"),
    ],
)
def test_values_are_converted(name: str, value: setting_table.Value, expected: setting_table.Value) -> None:
    result = read(name, value)
    assert result == expected and type(result) is type(expected)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("store.flush", "synk", "did you mean sync"),
        ("broker.port", "70000", "port"),
        ("broker.port", "1.5", "whole number"),
        ("broker.port", "abc", "a port from 0"),
        ("broker.long_polling", "maybe", "true or false"),
        ("store.disk_used_max", "120", "percentage"),
        ("store.segment_bytes", "0", "byte"),
        ("store.flush_timeout_s", "5MiB", "not a unit"),
        ("store.flush_timeout_s", "-1", "negative"),
    ],
)
def test_values_that_cannot_be_are_refused_with_the_reason(name: str, value: str, reason: str) -> None:
    with pytest.raises(SettingError, match=reason):
        read(name, value)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("store.flsh", "store.flush"),
        ("flushDiskTyp", "flushDiskType"),
        ("FLUSHDISKTYPE", "flushDiskType"),
        ("broker.auto-create-topic", "broker.auto_create_topic"),
        ("retention_hour", "store.retention_hours"),
    ],
)
def test_misspelt_names_are_refused_with_the_nearest_right_one(name: str, near: str) -> None:
    with pytest.raises(SettingError, match=f"did you mean {near}\\?"):
        setting_table.find(name)


def test_a_java_name_of_two_sections_goes_to_the_preferred_one() -> None:
    assert setting_table.find("listenPort")[0].name == "broker.port"
    assert setting_table.find("listenPort", prefer=("namesrv",))[0].name == "namesrv.port"
    assert setting_table.find("listenPort", section="namesrv")[0].name == "namesrv.port"


def test_dynamic_changes_are_all_or_none() -> None:
    settings = Settings()
    changed = setting_table.change_dynamic(
        settings, [("orderMessageEnable", "true"), ("namesrv.topic_list", "true")], section="namesrv"
    )
    assert [row.name for row in changed] == ["namesrv.order_message"]
    assert settings.namesrv.order_message
    with pytest.raises(SettingError, match="while the server runs"):
        setting_table.change_dynamic(
            settings, [("namesrv.order_message", "false"), ("listenPort", "1")], section="namesrv"
        )
    assert settings.namesrv.order_message


def test_each_server_changes_only_its_own_settings() -> None:
    for section, name in (("namesrv", "store.retention_hours"), ("broker", "namesrv.order_message")):
        with pytest.raises(SettingError, match="not a setting of this server"):
            setting_table.change_dynamic(Settings(), [(name, "1")], section=section)


def test_properties_text_uses_java_names_and_units() -> None:
    lines = setting_table.java_properties(Settings(), ["broker", "store"]).splitlines()
    assert {"brokerName=broker-a", "flushDiskType=ASYNC_FLUSH", "syncFlushTimeout=5000"} <= set(lines)
