"""What an operator asks of a cluster, PocketMQ's or Apache's: `connect_admin` gives an `Admin`."""


class Admin:
    """Asks name servers and brokers about clusters, topics, groups, messages and offsets, and changes them."""
