"""How a group's consumers share the queues of a topic: RocketMQ's own rules, so that clients of all kinds can mix."""

from collections.abc import Sequence

from pocketmq.model.message import MessageQueue


class AverageAllocator:
    """Each consumer gets a run of neighbouring queues; the first ones get one more when it does not divide evenly."""

    __slots__ = ()

    def allocate(self, me: str, consumers: Sequence[str], queues: Sequence[MessageQueue]) -> list[MessageQueue]:
        """This consumer's run; empty when there are more consumers than queues, or it is not among them."""
        if me not in consumers or not queues:
            return []
        index = consumers.index(me)
        share, rest = divmod(len(queues), len(consumers))
        start = index * share + min(index, rest)
        return list(queues[start : start + share + (index < rest)])


class CircleAllocator:
    """The queues are dealt out one by one, like cards."""

    __slots__ = ()

    def allocate(self, me: str, consumers: Sequence[str], queues: Sequence[MessageQueue]) -> list[MessageQueue]:
        """Every n-th queue, n being the number of consumers."""
        if me not in consumers:
            return []
        return list(queues[consumers.index(me) :: len(consumers)])
