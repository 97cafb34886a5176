"""A name server and a broker of the house on virtual time, for what goes on around sends and handling."""

import random

import pytest

import pocketmq
from pocketmq.broker.broker import Broker
from pocketmq.log.memory_disk import MemoryDisk
from pocketmq.namesrv.server import NameServer
from pocketmq.testing import SimulatedNetwork, VirtualClock, run
from pocketmq.testing.embedded import embedded_settings


class House:
    """A name server and a broker on virtual time."""

    def __init__(self):
        self.clock = VirtualClock()
        self.network = SimulatedNetwork(self.clock, seed=3)
        self.settings = embedded_settings()
        self.settings.namesrv.host = self.settings.broker.host = "10.0.0.2"
        self.settings.namesrv.port, self.settings.broker.port = 9876, 10911
        self.settings.broker.namesrv = "10.0.0.2:9876"
        self.disk = MemoryDisk()
        self.clients = []

    async def start(self):
        machine = self.network.host("10.0.0.2")
        self.name_server = NameServer(self.settings, clock=self.clock, network=machine, disk=self.disk)
        await self.name_server.start()
        self.broker = Broker(self.settings, clock=self.clock, disk=self.disk, network=machine)
        await self.broker.start()
        return self

    async def restart(self):
        await self.broker.stop()
        await self.clock.sleep(2)
        machine = self.network.host("10.0.0.2")
        self.broker = Broker(self.settings, clock=self.clock, disk=self.disk, network=machine)
        await self.broker.start()

    def connect(self, address="10.0.0.2:9876", **options):
        client = pocketmq.connect(
            address,
            clock=self.clock,
            network=self.network.host(),
            random_source=random.Random(len(self.clients)),
            **options,
        )
        self.clients.append(client)
        return client


@pytest.fixture
def live():
    def live(story):
        async def main():
            house = await House().start()
            await story(house)
            for client in house.clients:
                await client.close()
            await house.broker.stop()
            await house.name_server.stop()

        run(main())

    return live
