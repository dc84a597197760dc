"""
Lists that doors show in pages: whole and in order, whatever lies between whose files are gone.
"""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from vidrelay.core.door import Look, Page, View, Wish
from vidrelay.core.task import State
from vidrelay.providers.ark.door import make as make_ark
from vidrelay.providers.dashscope.door import make as make_dashscope
from vidrelay.providers.kling.door import make as make_kling
from vidrelay.providers.luma.door import make as make_luma
from vidrelay.providers.minimax.door import make as make_minimax
from vidrelay.providers.minimax.v2_door import QUERY
from vidrelay.providers.openai.door import make as make_openai
from vidrelay.providers.vidu.door import make as make_vidu
from vidrelay.testing.doors import call_door, view_of
from vidrelay.testing.records import make_task


def history(gone: Iterable[bool]) -> list[View]:
    """
    An account's tasks, newest first, each with or without its file.
    """
    return [
        view_of(State.DONE, task=make_task(id=f"task-{number}"), gone=is_gone) for number, is_gone in enumerate(gone)
    ]


def holding(views: list[View], pages: list[Page] | None = None) -> Callable[[Wish], Any]:
    """
    What a relay with those tasks answers.
    """
    places = {view.task.id: place for place, view in enumerate(views)}

    def grant(wish: Wish) -> Any:
        if isinstance(wish, Look):
            return views[places[wish.task_id]]
        assert isinstance(wish, Page)
        if pages is not None:
            pages.append(wish)
        start = 0 if wish.after is None else places[wish.after] + 1
        return views[start : start + wish.limit]

    return grant


def there(views: list[View]) -> list[str]:
    """
    The ids of those whose file is there.
    """
    return [view.task.id for view in views if not view.gone]


WALLS = {
    "none is gone": [False] * 45,
    "all are gone": [True] * 45,
    "the newest are gone": [True] * 130 + [False] * 45,
    "the oldest are gone": [False] * 45 + [True] * 130,
    "those between are gone": [False] * 25 + [True] * 130 + [False] * 20,
    "each third is gone": [number % 3 == 2 for number in range(90)],
    "just as many as a page": [False] * 20,
}


@pytest.mark.parametrize("limit", [1, 7, 20, 100])
@pytest.mark.parametrize("order", ["desc", "asc"])
@pytest.mark.parametrize("gone", WALLS.values(), ids=WALLS)
def test_openais_list_is_whole_in_pages_that_are_full(gone: list[bool], order: str, limit: int) -> None:
    """The SDK goes on after `last_id`: without one it stops, or starts over."""
    views = history(gone)
    seen: list[str] = []
    more = True
    while more:
        query = {"order": order, "limit": str(limit), **({"after": seen[-1]} if seen else {})}
        told = call_door(make_openai(None), "GET", "/v1/videos", query=query, grant=holding(views)).json
        ids, more = [video["id"] for video in told["data"]], told["has_more"]
        assert [told["first_id"], told["last_id"]] == ([ids[0], ids[-1]] if ids else [None, None])
        assert len(ids) == limit if more else len(ids) <= limit
        assert ids or not seen
        seen += ids
    assert seen == (there(views) if order == "desc" else there(views)[::-1])


@pytest.mark.parametrize(
    ("door", "path", "rows"),
    [
        (make_dashscope(None), "/api/v1/tasks", lambda said: [row["task_id"] for row in said["tasks"]]),
        (make_luma(None), "/dream-machine/v1/generations", lambda said: [row["id"] for row in said["generations"]]),
        (make_kling(None), "/v1/videos/text2video", lambda said: [row["task_id"] for row in said["data"]]),
        (make_minimax(None), QUERY, lambda said: [row["id"] for row in said["tasks"]]),
        (make_ark(None), "/api/v3/contents/generations/tasks", lambda said: [row["id"] for row in said["items"]]),
        (make_vidu(None), "/ent/v2/tasks", lambda said: [row["id"] for row in said["tasks"]]),
    ],
    ids=["dashscope", "luma", "kling", "minimax", "ark", "vidu"],
)
def test_what_is_gone_hides_nothing_that_is_older(door: Any, path: str, rows: Any) -> None:
    """However many of the newest clips have been deleted, the first page is of those that are there."""
    views = history([True] * 505 + [False] * 3)
    assert rows(call_door(door, "GET", path, grant=holding(views)).json) == there(views)


def test_a_list_by_token_goes_on_where_a_page_found_nothing() -> None:
    """One page looks at so many tasks at most; its token leads to the rest, and the last page has none."""
    views = history([False] + [True] * 2100 + [False] * 3)
    seen: list[str] = []
    token, calls = "", 0
    while calls == 0 or token:
        query = {"pager.pagesz": "2", **({"pager.page_token": token} if token else {})}
        told = call_door(make_vidu(None), "GET", "/ent/v2/tasks", query=query, grant=holding(views)).json
        seen += [row["id"] for row in told["tasks"]]
        token, calls = told["next_page_token"], calls + 1
        assert calls < 10
    assert seen == there(views)


def test_a_page_that_is_soon_full_reads_no_more_than_it_needs() -> None:
    """And what is gone is passed over in few reads, however small the page is."""
    soon: list[Page] = []
    call_door(make_openai(None), "GET", "/v1/videos", grant=holding(history([False] * 90), soon))
    assert [page.limit for page in soon] == [21]
    late: list[Page] = []
    views = history([True] * 500 + [False])
    call_door(make_luma(None), "GET", "/dream-machine/v1/generations?limit=1", grant=holding(views, late))
    assert len(late) < 10
