"""Typed headers, one file per family; `base` says how they are read and written."""
