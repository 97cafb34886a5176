"""Users and access rules."""

from pocketmq.wire.headers.base import Header


class CreateUserRequestHeader(Header):
    """AUTH_CREATE_USER 3001."""

    username: str | None = None


class UpdateUserRequestHeader(Header):
    """AUTH_UPDATE_USER 3002."""

    username: str | None = None


class DeleteUserRequestHeader(Header):
    """AUTH_DELETE_USER 3003."""

    username: str | None = None


class GetUserRequestHeader(Header):
    """AUTH_GET_USER 3004."""

    username: str | None = None


class ListUsersRequestHeader(Header):
    """AUTH_LIST_USER 3005."""

    filter: str | None = None


class CreateAclRequestHeader(Header):
    """AUTH_CREATE_ACL 3006."""

    subject: str | None = None


class UpdateAclRequestHeader(Header):
    """AUTH_UPDATE_ACL 3007."""

    subject: str | None = None


class DeleteAclRequestHeader(Header):
    """AUTH_DELETE_ACL 3008."""

    subject: str | None = None
    policy_type: str | None = None
    resource: str | None = None


class GetAclRequestHeader(Header):
    """AUTH_GET_ACL 3009."""

    subject: str | None = None


class ListAclsRequestHeader(Header):
    """AUTH_LIST_ACL 3010."""

    subject_filter: str | None = None
    resource_filter: str | None = None
