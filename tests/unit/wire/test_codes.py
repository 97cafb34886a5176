"""Codes by their standard names."""

from pocketmq.wire.codes import RETRYABLE_SEND_CODES, STORED_CODES, LanguageCode, RequestCode, ResponseCode


def test_every_request_code_is_there_under_its_standard_name() -> None:
    assert len(RequestCode) == 158
    assert RequestCode.SEND_MESSAGE == 10
    assert RequestCode.SEND_MESSAGE_V2 == 310
    assert RequestCode.LITE_PULL_MESSAGE == 361
    assert RequestCode.AUTH_LIST_ACL == 3010
    assert RequestCode.BATCH_ACK_MESSAGE == 200_151


def test_response_codes_have_their_standard_names() -> None:
    assert ResponseCode.SUCCESS == 0
    assert ResponseCode.PULL_OFFSET_MOVED == 21
    assert ResponseCode.CONTROLLER_BROKER_LIVE_INFO_NOT_EXISTS == 2016
    assert ResponseCode.GO_AWAY == 1500
    assert ResponseCode.RPC_TIME_OUT == -1006


def test_codes_of_a_send_that_was_stored_are_not_retried() -> None:
    assert STORED_CODES.isdisjoint(RETRYABLE_SEND_CODES)
    assert {ResponseCode(code) for code in STORED_CODES | RETRYABLE_SEND_CODES}


def test_language_codes() -> None:
    assert (LanguageCode.JAVA, LanguageCode.PYTHON, LanguageCode.GO, LanguageCode.NODE_JS) == (0, 3, 9, 13)
