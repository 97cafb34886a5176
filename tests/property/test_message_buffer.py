"""The message buffer against the plainest model of it."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pocketmq.client.buffers import QueueBuffer
from pocketmq.testing.fakes import FakeBuffer, make_received


class BufferAgainstModel(RuleBasedStateMachine):
    """Every call goes to the buffer and to the fake, which is simple enough to be right."""

    def __init__(self):
        super().__init__()
        self.buffer = QueueBuffer(0, count_max=10)
        self.model = FakeBuffer(0)
        self.next_offset = 0

    @rule(gaps=st.lists(st.integers(1, 3), max_size=5), tail=st.integers(0, 2))
    def put(self, gaps, tail):
        self.next_offset = max(self.next_offset, self.model.position)
        offsets = []
        for gap in gaps:
            self.next_offset += gap
            offsets.append(self.next_offset - 1)
        self.next_offset += tail
        messages = [make_received(offset=offset) for offset in offsets]
        self.buffer.put(messages, self.next_offset)
        self.model.put(messages, self.next_offset)

    @rule(count=st.integers(1, 6))
    def take(self, count):
        assert self.buffer.take(count) == self.model.take(count)

    @rule(data=st.data())
    def settle(self, data):
        if self.model.taken:
            message = data.draw(st.sampled_from(self.model.taken))
            assert self.buffer.settle(message) is self.model.settle(message) is True
            assert self.buffer.settle(message) is False

    @rule()
    def put_back(self):
        # As consumers do it: the lowest of what is out, so that what waits stays in order.
        ready = self.model.ready
        below = [m for m in self.model.taken if not ready or m.queue_offset < ready[0].queue_offset]
        if below:
            message = max(below, key=lambda m: m.queue_offset)
            self.buffer.put_back(message)
            self.model.put_back(message)

    @rule()
    def drop_and_begin_again(self):
        assert self.buffer.drop_waiting() == self.model.drop_waiting()
        position = self.model.position
        assert self.buffer.position == position
        self.buffer.clear(position)
        self.model.clear(position)
        self.next_offset = position

    @invariant()
    def same(self):
        assert self.buffer.position == self.model.position
        assert self.buffer.waiting == self.model.waiting
        assert self.buffer.unsettled == self.model.unsettled

    @invariant()
    def marks(self):
        if self.buffer.unsettled >= 10:
            assert self.buffer.full
        if self.buffer.unsettled == 0:
            assert not self.buffer.full


BufferAgainstModel.TestCase.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
TestBufferAgainstModel = BufferAgainstModel.TestCase
