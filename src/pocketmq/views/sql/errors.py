"""What is said about an expression that cannot be understood."""

from pocketmq.model.errors import PocketMQError
from pocketmq.wire.codes import ResponseCode

_EXCERPT_CHARS = 24


class ExpressionError(PocketMQError):
    """The expression cannot be understood: where (line and column from 1), and what was expected there."""

    code = int(ResponseCode.SUBSCRIPTION_PARSE_FAILED)

    def __init__(self, expression: str, at: int, problem: str) -> None:
        before = expression[:at]
        self.at = at
        self.line = before.count("\n") + 1
        self.column = at - (before.rfind("\n") + 1) + 1
        super().__init__(
            f"the SQL92 expression cannot be understood at line {self.line}, column {self.column} "
            f"({_excerpt(expression, at)}): {problem}"
        )


def _excerpt(expression: str, at: int) -> str:
    """Some of the text around the place, on one line."""
    start, end = max(0, at - _EXCERPT_CHARS), at + _EXCERPT_CHARS
    before = ("..." if start else "") + expression[start:at]
    after = expression[at:end] + ("..." if end < len(expression) else "")
    return " ".join(f"{before}[here]{after}".split())
