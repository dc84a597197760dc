"""
Reads V2's list, whose rows are not documented: how they are named, and what they may show of a job.
"""

from collections.abc import Mapping
from typing import Any

from vidrelay.core.messages import HttpReply
from vidrelay.core.task import Task
from vidrelay.providers.listing import same
from vidrelay.providers.minimax import words
from vidrelay.providers.minimax.content import text_in
from vidrelay.providers.replies import identity, number_of, read_object, rows_of


def rows_in(reply: HttpReply) -> list[dict[str, Any]] | None:
    """
    The rows, under whichever of the usual names; None where the reply is no list.
    """
    data = read_object(reply)
    return rows_of(data, "tasks", "items", "data") if data is not None and words.is_fine_v2(reply, data) else None


def id_of(row: Mapping[str, Any]) -> str | None:
    """
    The id of the row's job, or None.
    """
    return identity(row, "id") or identity(row, "task_id")


def can_be(row: Mapping[str, Any], task: Task) -> bool:
    """
    Whether nothing that the row shows speaks against it; clips are some frames longer or shorter than was asked for.
    """
    asked, text = task.parameters, text_in(row)
    length, wanted = number_of(row, "duration"), number_of(asked, "duration")
    if length is not None and wanted is not None and abs(length - wanted) >= 1:
        return False
    shown = [name for name in ("model", "resolution", "ratio") if row.get(name) and asked.get(name) != "adaptive"]
    return text in (None, text_in(asked)) and all(same(row[name], asked.get(name)) for name in shown)
