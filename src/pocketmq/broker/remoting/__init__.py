"""Remoting requests to and answers from the broker service."""
