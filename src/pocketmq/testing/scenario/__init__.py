"""Scenarios: readable text files that say what is done with a broker and what must come of it, one a behaviour.

    from pocketmq.testing.scenario import play

    def test_billing():
        play("billing.scenario", handlers={"charge": charge})

The steps are described in docs/testing.md. They are played on virtual time, with a network and a disk in memory, or on
a cluster that runs somewhere.
"""

from pocketmq.testing.scenario.playing import ScenarioError, parse, play, read
from pocketmq.testing.scenario.script import Script, ScriptError

__all__ = ["ScenarioError", "Script", "ScriptError", "parse", "play", "read"]
