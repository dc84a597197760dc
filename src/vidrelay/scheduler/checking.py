"""
Trying an account's key without paying, when a person asks for it.
"""

import logging

from vidrelay.core.adapter import Checked, Refused
from vidrelay.core.errors import TransportError
from vidrelay.core.task import BlockReason
from vidrelay.scheduler.account import Account
from vidrelay.scheduler.face import AccountCheck
from vidrelay.scheduler.tools import Tools

logger = logging.getLogger(__name__)


async def check(account: Account, tools: Tools) -> AccountCheck:
    """
    Ask the account's provider, unless the account rests.

    That it does not take the key is told, and no more: the tasks find it out by calls of their own, and a key that may
    make clips need not be one that may ask for a balance.
    """
    if not account.plan.adapter.traits.can_check:
        return _told(account, None, "its provider has no call that tries the key without paying")
    if account.rest(creates=False, monotonic=tools.clock.monotonic()) > 0:
        return _told(account, None, _resting(account, tools))
    heard = account.heard()
    try:
        outcome = await tools.caller.converse(account, account.plan.adapter.check())
    except TransportError as trouble:
        rests = account.held(creates=False, monotonic=tools.clock.monotonic()) > 0
        return _told(account, None, _resting(account, tools) if rests else trouble.message)
    except Exception:
        logger.exception("check.failed account=%s", account.name)
        return _told(account, None, "the relay could not make out the provider's answer")
    if isinstance(outcome, Checked):
        await tools.resumed(account, account.answered(heard))
        return _told(account, True, outcome.detail or "the provider takes the key")
    if not isinstance(outcome, Refused):
        return _told(account, None, outcome.detail)
    if outcome.reason == BlockReason.AUTH:
        return _told(account, False, outcome.detail)
    if outcome.reason == BlockReason.BALANCE:
        return _told(account, True, outcome.detail)
    await tools.pause(account, outcome)
    return _told(account, None, outcome.detail)


def _told(account: Account, ok: bool | None, detail: str) -> AccountCheck:
    return AccountCheck(account=account.name, ok=ok, detail=detail)


def _resting(account: Account, tools: Tools) -> str:
    pause = account.pause(now=tools.clock.now(), monotonic=tools.clock.monotonic())
    why = f" ({pause.reason}: {pause.detail})" if pause is not None else ""
    return f"the account rests{why}; vidrelay accounts --resume {account.name} ends that"
