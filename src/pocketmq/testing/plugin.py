"""The pytest plugin: fixtures with an embedded server. Loaded by every pytest run, so importing it costs nothing."""
