"""The one table of golden packets, valid and invalid, used by the tests of codec, client and server alike.

Bytes marked "golden" were produced by RocketMQ's own classes; the others are written by hand after them. No entry is
made with the codec that it is there to test.
"""
