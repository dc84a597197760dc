"""
Trying an account's key without paying: when a person asks for it, and behind the scenes where the answer tells what is
left to spend.
"""

import asyncio
import logging

from vidrelay.core.adapter import Checked, Refused
from vidrelay.core.errors import TransportError
from vidrelay.core.task import BlockReason
from vidrelay.scheduler.account import Account
from vidrelay.scheduler.face import AccountCheck
from vidrelay.scheduler.tools import Tools
from vidrelay.scheduler.waiting import either

logger = logging.getLogger(__name__)

REFRESH_SECONDS = 3600.0
LEAST_SECONDS = 900.0
"""Between two questions for what is left at the least, however much is spent."""

REST_LOOK_SECONDS = 30.0
"""How often it is looked whether an account still rests, which a person may have ended."""


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
        if outcome.quota is not None:
            await tools.quotas.keep(account.name, outcome.quota)
        return _told(account, True, outcome.detail or "the provider takes the key")
    if not isinstance(outcome, Refused):
        return _told(account, None, outcome.detail)
    if outcome.reason == BlockReason.AUTH:
        return _told(account, False, outcome.detail)
    if outcome.reason == BlockReason.BALANCE:
        return _told(account, True, outcome.detail)
    await tools.pause(account, outcome)
    return _told(account, None, outcome.detail)


async def keep_quotas_fresh(tools: Tools) -> None:
    """
    Ask what every account has left, where its provider tells that: at the start, every hour, and sooner after a create.
    """
    async with asyncio.TaskGroup() as group:
        for name, spent in tools.quotas.spent.items():
            group.create_task(_keep_fresh(tools.accounts[name], spent, tools))


async def _keep_fresh(account: Account, spent: asyncio.Event, tools: Tools) -> None:
    while True:
        while (rest := account.rest(creates=False, monotonic=tools.clock.monotonic())) > 0:
            await tools.clock.sleep(min(rest, REST_LOOK_SECONDS))
        spent.clear()
        try:
            found = await check(account, tools)
            logger.info("quota.asked account=%s ok=%s", account.name, found.ok)
        except Exception:
            # It is for people to see, and must end nothing: whatever it was, it is asked again.
            logger.exception("quota.failed account=%s", account.name)
        await tools.clock.sleep(LEAST_SECONDS)
        await either(spent, REFRESH_SECONDS - LEAST_SECONDS, tools.clock)


def _told(account: Account, ok: bool | None, detail: str) -> AccountCheck:
    return AccountCheck(account=account.name, ok=ok, detail=detail)


def _resting(account: Account, tools: Tools) -> str:
    pause = account.pause(now=tools.clock.now(), monotonic=tools.clock.monotonic())
    why = f" ({pause.reason}: {pause.detail})" if pause is not None else ""
    return f"the account rests{why}; vidrelay accounts --resume {account.name} ends that"
