"""Scenario files are tests."""

from pocketmq.testing.scenario.collecting import pytest_collect_file

__all__ = ["pytest_collect_file"]
