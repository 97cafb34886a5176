"""Users and access rules (3001 to 3010)."""

from pocketmq.wire.bodies.codec import Body


class UserInfo(Body):
    """A user; `user_type` Super or Normal, `user_status` enable or disable."""

    username: str | None = None
    password: str | None = None
    user_type: str | None = None
    user_status: str | None = None


class PolicyEntryInfo(Body):
    """One rule: `resource` is `Topic:name`, `decision` Allow or Deny."""

    resource: str | None = None
    actions: list[str] | None = None
    source_ips: list[str] | None = None
    decision: str | None = None


class PolicyInfo(Body):
    """Rules of one kind: `policy_type` Custom or Default."""

    policy_type: str | None = None
    entries: list[PolicyEntryInfo] | None = None


class AclInfo(Body):
    """All rules of one subject, `User:name`."""

    subject: str | None = None
    policies: list[PolicyInfo] | None = None
