"""SQL92 filter expressions over message properties: text -> tokens -> tree -> a function over property bytes.

Theory of operation. `tokens` cuts the text, `parser` makes a `tree` of it and refuses what has no meaning, and
`compiler` turns the tree into nested functions over a *row*: the values of the properties that the expression names, as
the bytes they are stored as, None for those that a message does not have. Nothing else of a message is looked at, and
nothing of the text is ever executed.

Every condition is True, False or None (unknown). What cannot be evaluated at all, such as `a > 5` where `a` is `x`,
is an error of the whole expression, and its message is not wanted; so it was in RocketMQ, whose answers were compared
for every construct (`tests/golden/sql92.py`).

Bounds: the length of the text, the depth of the tree, its number of nodes, of names and of the strings in a list. With
them an expression costs no more than some hundred microseconds a message, whoever wrote it.
"""
