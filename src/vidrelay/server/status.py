"""
The calls about the relay itself: accounts, counters, health, metrics, its description, proof and shutdown.
"""

from collections.abc import Callable, Mapping
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from vidrelay.core.errors import InvalidRequest, UnknownAccount
from vidrelay.core.ports import ToldQuota
from vidrelay.core.proof import client_proof, is_nonce, proves, server_proof
from vidrelay.core.wire import instant, money_json, no_fields
from vidrelay.scheduler.face import AccountStatus, RelayFace, Stats
from vidrelay.server.answers import CLOSE, TEXT_HEADERS, Answer, json_answer
from vidrelay.server.dispatch import Call
from vidrelay.server.errors import forbidden, problem_answer
from vidrelay.server.metrics import metrics_text


class StatusCalls:
    """
    Answers the calls about the relay itself.
    """

    def __init__(
        self,
        relay: RelayFace,
        *,
        token: Callable[[], str],
        port: int,
        instance: str,
        version: str,
        shutdown: Callable[[], None],
        description: Mapping[str, Any],
    ) -> None:
        """
        `shutdown` is called once the answer to `POST /shutdown` is out; `description` is the OpenAPI document.
        """
        self._relay = relay
        self._token = token
        self._port = port
        self._instance = instance
        self._health = json_answer({"status": "ok", "version": version})
        self._shutdown = shutdown
        self._description = json_answer(description)

    async def accounts(self, call: Call) -> ASGIApp:
        """
        How each account stands.
        """
        return json_answer({"accounts": [self._account(account) for account in self._relay.accounts()]})

    async def resume(self, call: Call) -> ASGIApp:
        """
        Lift an account's pause.
        """
        no_fields(call.body)
        try:
            return json_answer(self._account(await self._relay.resume(call.params["name"])))
        except UnknownAccount as exc:
            # In a request an unknown account is a wrong field; in a path it is a path to nothing.
            return problem_answer(exc, status=404)

    async def check(self, call: Call) -> ASGIApp:
        """
        Whether an account's provider takes its key.
        """
        no_fields(call.body)
        try:
            found = await self._relay.check(call.params["name"])
        except UnknownAccount as exc:
            return problem_answer(exc, status=404)
        return json_answer({"account": found.account, "ok": found.ok, "detail": found.detail})

    async def stats(self, call: Call) -> ASGIApp:
        """
        The lifetime counters and what comes of them.
        """
        return json_answer(stats_json(await self._relay.stats()))

    async def health(self, call: Call) -> ASGIApp:
        """
        That the relay is there.
        """
        return self._health

    async def metrics(self, call: Call) -> ASGIApp:
        """
        Counters and gauges for Prometheus.
        """
        text = metrics_text(await self._relay.stats(), self._relay.live(), self._relay.accounts())
        return Answer(text.encode(), headers=TEXT_HEADERS)

    async def describe(self, call: Call) -> ASGIApp:
        """
        The API's description.
        """
        return self._description

    async def proof(self, call: Call) -> ASGIApp:
        """
        Prove that this relay knows the token to one who has proved the same, so that no token is sent to a stranger.

        Raises:
            Refusal: The proof is wrong; it is shown as the gate's own 403.
        """
        try:
            fields = no_fields(call.body, frozenset({"nonce", "mac"}))
        except InvalidRequest:
            raise forbidden() from None
        nonce, token = fields.get("nonce"), self._token()
        if not is_nonce(nonce) or not token:
            raise forbidden()
        if not proves(fields.get("mac"), client_proof(token, nonce=str(nonce), port=self._port)):
            raise forbidden()
        mac = server_proof(token, nonce=str(nonce), port=self._port, instance=self._instance)
        # The connection stays open: its other end has proved itself, so the token may follow on it.
        return json_answer({"mac": mac})

    async def shutdown(self, call: Call) -> ASGIApp:
        """
        Stop the relay, once this is answered.
        """
        no_fields(call.body)
        answer = json_answer({"status": "stopping"}, status=202, headers=CLOSE)

        async def answer_then_stop(scope: Scope, receive: Receive, send: Send) -> None:
            try:
                await answer(scope, receive, send)
            finally:
                self._shutdown()

        return answer_then_stop

    def _account(self, account: AccountStatus) -> dict[str, Any]:
        ways = self._relay.doors().values()
        return account_json(account, door_key=any(way.door_key and way.account == account.name for way in ways))


def account_json(account: AccountStatus, *, door_key: bool) -> dict[str, Any]:
    """
    An account as `GET /accounts` shows it; `quota` is null where the provider tells none. `door_key`: its door is
    opened by a key in the path too.
    """
    pause = account.pause
    return {
        "name": account.name,
        "provider": account.provider,
        "isDefault": account.is_default,
        "keyFrom": account.key_from,
        "doorKey": door_key,
        "windows": [
            {
                "name": window.name,
                "limit": window.limit,
                "source": window.source,
                "running": window.running,
                "queued": window.queued,
            }
            for window in account.windows
        ],
        "quota": None if account.quota is None else _quota_json(account.quota),
        "paused": pause is not None,
        "scope": pause.scope.value if pause is not None else None,
        "why": pause.reason if pause is not None else None,
        "detail": pause.detail if pause is not None else None,
        "until": instant(pause.until) if pause is not None and pause.until is not None else None,
    }


def _quota_json(told: ToldQuota) -> dict[str, Any]:
    resets_at = told.quota.resets_at
    return {
        "left": told.quota.left,
        "unit": told.quota.unit,
        "resetsAt": None if resets_at is None else instant(resets_at),
        "toldAt": instant(told.told_at),
    }


def stats_json(stats: Stats) -> dict[str, Any]:
    """
    The counters by name, `saved` and `segments` beside them (contract section 8); lengths are seconds.
    """
    return {
        **stats.every_counter(),
        "saved": {"clips": stats.saved_clips, "money": [money_json(money) for money in stats.saved_money]},
        "segments": {
            model: {name: {"median": spread.median, "p90": spread.p90} for name, spread in segments.items()}
            for model, segments in stats.segments.items()
        },
    }
