"""
The calls about the result cache: what it holds, whether it is whole, and emptying it.
"""

from starlette.types import ASGIApp

from vidrelay.core.wire import instant, no_fields
from vidrelay.scheduler.face import RelayFace
from vidrelay.server.answers import json_answer
from vidrelay.server.dispatch import Call

MAX_RESULTS = 1000


class CacheCalls:
    """
    Answers the calls about the result cache.
    """

    def __init__(self, relay: RelayFace) -> None:
        self._relay = relay

    async def show(self, call: Call) -> ASGIApp:
        """
        The results used longest ago, and the bytes of all.
        """
        results, total = await self._relay.cached(limit=MAX_RESULTS)
        return json_answer(
            {
                "results": [
                    {
                        "taskId": result.task_id,
                        "fingerprint": result.fingerprint,
                        "bytes": result.size_bytes,
                        "savedAt": instant(result.saved_at),
                        "usedAt": instant(result.used_at),
                    }
                    for result in results
                ],
                "bytes": total,
            }
        )

    async def verify(self, call: Call) -> ASGIApp:
        """
        Forget every result that is not whole.
        """
        no_fields(call.body)
        return json_answer({"forgotten": await self._relay.verify_cache()})

    async def clear(self, call: Call) -> ASGIApp:
        """
        Delete every result.
        """
        no_fields(call.body)
        return json_answer({"cleared": await self._relay.clear_cache()})
