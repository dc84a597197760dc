"""
Every error vidrelay raises, as one tree.

    VidrelayError
      RequestError            what was asked cannot be done as asked
        InvalidRequest          a field is missing, wrong or unknown
        UnsupportedMedia        a reference is no picture we read
        TooLarge                a body or a picture is over its limit
        UnknownTask             no task has that id
        UnknownAsset            no reference image has that id
        UnknownAccount          no account has that name, or none can be chosen
        IdempotencyConflict     the key belongs to another request
        WrongState              the task is not in a state that allows this
        ResultGone              the result was evicted from the cache
      IllegalTransition       the state table has no such step
      StoreError              the database could not do its part
        StaleTask               somebody saved the task in between
        DuplicateRemote         the remote job belongs to another task
        StoreBusy               the database did not answer in time
        DatabaseUnusable        it is corrupt, not ours, or newer than this program
      DiskFull                there is no room for what must be written
      TransportError          a call failed; `maybe_sent` says whether it may have arrived
        OutboundRefused         the gate did not let the call out
        ReplyTooLarge           the answer is over its limit
        DeadAddress             the result's address no longer gives it
        BadMedia                what came is short, altered or not what it should be
      ConfigError             the configuration is wrong: exit 2
      RelayUnavailable        no relay can run or be reached: exit 3

A class's docstring is its default message. `code` is stable, in snake_case, and documented in docs/reference/errors.md.
"""

from inspect import cleandoc


class VidrelayError(Exception):
    """
    Something went wrong in vidrelay.
    """

    code = "internal_error"
    retryable = False

    def __init__(
        self, message: str | None = None, *, hint: str | None = None, retry_after: float | None = None
    ) -> None:
        """
        Tell what happened; `hint` says what a person can do, `retry_after` is seconds.
        """
        self.message = message or cleandoc(type(self).__doc__ or "")
        self.hint = hint
        self.retry_after = retry_after
        super().__init__(self.message)


class RequestError(VidrelayError):
    """
    The request cannot be served as it is.
    """

    code = "bad_request"
    field: str | None = None
    """The part of the request that is at fault, where there is one."""


class InvalidRequest(RequestError):
    """
    A field of the request is missing, wrong or unknown.
    """

    code = "invalid_request"

    def __init__(self, message: str | None = None, *, field: str | None = None, hint: str | None = None) -> None:
        """
        Name the `field` that is at fault where there is one.
        """
        self.field = field
        super().__init__(message, hint=hint)


class UnsupportedMedia(RequestError):
    """
    The file is not a PNG, JPEG or WebP picture that can be read.
    """

    code = "unsupported_media"


class TooLarge(RequestError):
    """
    The body or picture is over its limit.
    """

    code = "too_large"


class UnknownTask(RequestError):
    """
    No task has that id.
    """

    code = "unknown_task"


class UnknownAsset(RequestError):
    """
    No reference image has that id; upload it to /assets first.
    """

    code = "unknown_asset"
    field = "references"


class UnknownAccount(RequestError):
    """
    No account has that name.
    """

    code = "unknown_account"
    field = "account"


class IdempotencyConflict(RequestError):
    """
    That Idempotency-Key belongs to a different request.
    """

    code = "idempotency_conflict"


class WrongState(RequestError):
    """
    The task's state does not allow this.
    """

    code = "wrong_state"


class ResultGone(RequestError):
    """
    The result has been evicted from the cache.
    """

    code = "result_gone"


class IllegalTransition(VidrelayError):
    """
    The state table has no such step.
    """

    code = "illegal_transition"


class StoreError(VidrelayError):
    """
    The database could not do its part.
    """

    code = "store_error"
    retryable = True


class StaleTask(StoreError):
    """
    The task was saved by somebody else in between.
    """

    code = "stale_task"


class DuplicateRemote(StoreError):
    """
    That remote job already belongs to another task.
    """

    code = "duplicate_remote"
    retryable = False


class StoreBusy(StoreError):
    """
    The database did not answer in time.
    """

    code = "store_busy"


class DatabaseUnusable(StoreError):
    """
    The database is corrupt, not vidrelay's, or of a newer version; it was left untouched.
    """

    code = "database_unusable"
    retryable = False


class DiskFull(VidrelayError):
    """
    There is no room on the disk for what must be written.
    """

    code = "disk_full"
    retryable = True


class TransportError(VidrelayError):
    """
    A call to a provider failed.
    """

    code = "transport_error"
    retryable = True

    def __init__(
        self,
        message: str | None = None,
        *,
        maybe_sent: bool,
        hint: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        """
        `maybe_sent` is False only where it is certain that no byte of the request left.
        """
        self.maybe_sent = maybe_sent
        super().__init__(message, hint=hint, retry_after=retry_after)


class OutboundRefused(TransportError):
    """
    The address is not on the account's list of hosts, so nothing was sent there.
    """

    code = "outbound_refused"
    retryable = False

    def __init__(self, message: str | None = None, *, hint: str | None = None) -> None:
        """
        Tell which address was refused and why.
        """
        super().__init__(message, maybe_sent=False, hint=hint)


class ReplyTooLarge(TransportError):
    """
    The provider's answer is over its limit.
    """

    code = "reply_too_large"


class DeadAddress(TransportError):
    """
    The result's address no longer gives the file.
    """

    code = "dead_address"


class BadMedia(TransportError):
    """
    The file that came is short, altered, or not the kind it should be.
    """

    code = "bad_media"


class ConfigError(VidrelayError):
    """
    The configuration is wrong.
    """

    code = "config_error"

    def at(self, place: str) -> "ConfigError":
        """
        The same error with the place in front of it where what it is about is written: file, line and setting.
        """
        return ConfigError(f"{place}: {self.message}", hint=self.hint)


class RelayUnavailable(VidrelayError):
    """
    No relay can run here, or none can be reached.
    """

    code = "relay_unavailable"
