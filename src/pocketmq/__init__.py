"""PocketMQ: a message broker that speaks RocketMQ's protocols, and a client SDK for it and for Apache RocketMQ."""

__version__ = "0.1.0"
