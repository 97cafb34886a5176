"""How large an expression may be."""

EXPRESSION_CHARS_MAX = 16_384
NESTING_MAX = 48
"""Of brackets, signs and operators within each other."""
NODES_MAX = 1_000
"""Operators, values and names together; a list counts as one."""
NAMES_MAX = 32
"""Different properties: each is looked up once a message."""
LIST_STRINGS_MAX = 1_000
