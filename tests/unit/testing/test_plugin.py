"""The pytest plugin as its users see it: each test here runs a small pytest of its own."""

import subprocess
import sys

import pytest

from pocketmq.testing.embedded import EmbeddedServer

pytest_plugins = ["pytester"]

ASYNC_TEST = """
    import pytest

    {mark}
    async def test_one(pocketmq_client, pocketmq_server):
        receipt = await pocketmq_client.send("orders", b"hello")
        assert receipt.queue.topic == "orders"

    {mark}
    async def test_another(pocketmq_client):
        async with pocketmq_client:
            await pocketmq_client.send("orders", b"hello")

    {mark}
    async def test_one_that_never_uses_it(pocketmq_client):
        pass
"""
LOUD = ("-W", "error::ResourceWarning", "-W", "error::pytest.PytestUnraisableExceptionWarning")


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess(*LOUD, *arguments)


def test_async_tests_under_pytest_asyncio(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function")
    pytester.makepyfile(ASYNC_TEST.format(mark=""))
    run(pytester, "-p", "no:anyio").assert_outcomes(passed=3)


def test_async_tests_that_share_one_loop(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nasyncio_mode = auto\nasyncio_default_test_loop_scope = session")
    pytester.makepyfile(ASYNC_TEST.format(mark=""))
    run(pytester, "-p", "no:anyio").assert_outcomes(passed=3)


def test_async_tests_under_anyio(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("import pytest\n\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n")
    pytester.makepyfile(ASYNC_TEST.format(mark="@pytest.mark.anyio"))
    run(pytester, "-p", "no:asyncio").assert_outcomes(passed=3)


def test_a_message_that_comes_in_an_hour(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function")
    pytester.makepyfile(
        """
        async def test_a_reminder_comes_after_an_hour(pocketmq_client, pocketmq_server):
            await pocketmq_client.send("reminders", b"call back", delay=3600)
            async with pocketmq_client.consume("reminders", group="phone", from_where="first") as consumer:
                pocketmq_server.advance(3601)
                async with await consumer.next() as message:
                    assert message.body == b"call back"
        """
    )
    run(pytester, "-p", "no:anyio").assert_outcomes(passed=1)


def test_blocking_tests(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_one(pocketmq_sync_client, pocketmq_server):
            pocketmq_sync_client.send("orders", b"hello")
            pocketmq_server.advance(3600)
            pocketmq_sync_client.send("orders", b"hello")
        """
    )
    run(pytester).assert_outcomes(passed=1)


def test_the_async_client_in_a_blocking_test_says_which_one_to_take(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_one(pocketmq_client):\n    pocketmq_client.send('orders', b'hello')\n")
    result = run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*take pocketmq_sync_client*"])


def test_one_server_serves_all_tests_of_a_run(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        seen = set()

        def test_one(pocketmq_server):
            seen.add(pocketmq_server.namesrv)

        def test_another(pocketmq_server):
            seen.add(pocketmq_server.namesrv)
            assert len(seen) == 1
        """
    )
    run(pytester).assert_outcomes(passed=2)


def test_the_same_tests_run_on_a_real_cluster(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_send(pocketmq_sync_client, pocketmq_server, pytestconfig):
            assert pocketmq_server.namesrv == pytestconfig.getoption("--pocketmq-url")
            pocketmq_sync_client.send("orders", b"hello")

        def test_time(pocketmq_server):
            pocketmq_server.advance(1)
        """
    )
    with EmbeddedServer() as server:
        run(pytester, "--pocketmq-url", server.namesrv).assert_outcomes(passed=1, skipped=1)


def test_a_run_that_does_not_use_it_imports_next_to_nothing() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules); import pocketmq.testing.plugin; "
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["pocketmq", "pocketmq.testing", "pocketmq.testing.plugin"]
