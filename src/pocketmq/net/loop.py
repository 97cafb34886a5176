"""Which event loop runs: uvloop where it is installed, the standard one elsewhere."""

import asyncio


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A new event loop, for `asyncio.Runner(loop_factory=new_event_loop)`."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
