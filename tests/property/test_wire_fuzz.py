"""Every fuzz target, for a small fixed number of inputs; `fuzz/run.py` goes on for as long as wanted."""

from random import Random

import pytest
from fuzz_targets import TARGETS, Target
from mutation import inputs

INPUTS = 400


@pytest.mark.parametrize("name", TARGETS)
def test_decoder_raises_nothing_but_its_documented_errors(name: str) -> None:
    target = TARGETS[name]
    for _, data in zip(range(INPUTS), inputs(target.seeds, Random(name)), strict=False):
        try:
            target.run(data)
        except target.allowed:
            pass


def test_inputs_follow_from_the_seed() -> None:
    def some(seed: int) -> list[bytes]:
        return [data for _, data in zip(range(50), inputs((b"abc", b"defgh"), Random(seed)), strict=False)]

    assert some(1) == some(1)
    assert some(1) != some(2)


def test_targets_have_seeds_that_are_read_without_error() -> None:
    def reads(target: Target, seed: bytes) -> bool:
        try:
            target.run(seed)
        except target.allowed:
            return False
        return True

    for target in TARGETS.values():
        assert any(reads(target, seed) for seed in target.seeds), target.name
