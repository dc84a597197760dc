"""
Looking after tasks: `tasks`, `show`, `watch`, `cancel`, `resolve`, `result`.
"""

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vidrelay.cli.terminal import (
    Exit,
    Where,
    exit_of,
    exit_of_error,
    fault_lines,
    out,
    out_json,
    say,
    shortened,
    shown,
    span,
    table,
)
from vidrelay.core.errors import InvalidRequest, RequestError
from vidrelay.core.task import LIVE, Resolution, State

if TYPE_CHECKING:
    from vidrelay.client.calls import Client
    from vidrelay.client.views import TaskView

Ids = Annotated[list[str], typer.Argument(help="Task ids.", metavar="ID...", show_default=False)]
Id = Annotated[str, typer.Argument(help="The task's id.", metavar="ID", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def tasks(
    context: typer.Context,
    *,
    state: Annotated[list[State] | None, typer.Option(help="Only tasks in this state. May be repeated.")] = None,
    account: Annotated[str | None, typer.Option(help="Only tasks of this account.", metavar="NAME")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many, newest first.", metavar="N")] = 20,
    cursor: Annotated[str | None, typer.Option(help="Go on where an earlier list ended.", metavar="TEXT")] = None,
    as_json: AsJson = False,
) -> None:
    """
    List tasks, newest first.
    """
    asking = {"states": state or [], "account": account, "limit": limit, "cursor": cursor}
    finish(_tasks(context.obj, asking, as_json))


async def _tasks(where: Where, asking: dict[str, Any], as_json: bool) -> Exit:
    from vidrelay.cli.words import left, percent, stage

    async with where.client() as client:
        found, following = await client.tasks(**asking)
    if as_json:
        out_json({"tasks": [task.json for task in found], "next": following})
        return Exit.DONE
    if not found:
        say("No tasks.")
        return Exit.DONE
    table(
        ("id", "made", "account", "state", "standing", "prompt"),
        [
            (
                task.id,
                f"{task.created_at.astimezone():%m-%d %H:%M:%S}" if task.created_at else "",
                task.account,
                task.state,
                "" if task.ended else " ".join(filter(None, (stage(task), percent(task), left(task)))),
                shortened(task.prompt, 40),
            )
            for task in found
        ],
    )
    if following:
        say(f"More: vidrelay tasks --cursor {shown(following)}")
    return Exit.DONE


def show(context: typer.Context, task_id: Id, as_json: AsJson = False) -> None:
    """
    Show everything about a task.
    """
    finish(_show(context.obj, task_id, as_json))


async def _show(where: Where, task_id: str, as_json: bool) -> Exit:
    async with where.client() as client:
        task = await client.task(task_id)
    if as_json:
        out_json(task.json)
    else:
        for name, text in _facts(task):
            say(f"{name:>10}  {text}")
    return exit_of(task.state)


def _facts(task: "TaskView") -> list[tuple[str, str]]:
    from vidrelay.cli.words import left, percent, stage

    timings = task.timings
    segments = {
        "waited": timings.wait,
        "handed over": timings.submit,
        "in its line": timings.queue,
        "generated": timings.execute,
        "noticed": timings.return_,
        "fetched": timings.download,
        "in all": timings.total,
    }
    facts = [
        ("task", task.id),
        ("state", stage(task) if task.ended else f"{task.state}: {stage(task)}"),
        ("progress", ", ".join(filter(None, (percent(task), left(task))))),
        ("account", f"{shown(task.account)} ({shown(task.provider)})"),
        ("model", shown(task.model_version or "")),
        ("prompt", shown(task.prompt)),
        *((name, shown(str(value))) for name, value in task.request.items() if name != "prompt"),
        ("made", f"{task.created_at.astimezone():%Y-%m-%d %H:%M:%S}" if task.created_at else ""),
        ("remote id", shown(task.remote_id or "")),
        ("attempts", str(task.attempts) if task.attempts > 1 else ""),
        ("joined", f"{task.joins} times" if task.joins else ""),
        ("cost", shown(task.cost or "")),
        ("time", ", ".join(f"{name} {span(value)}" for name, value in segments.items() if value is not None)),
        *(("file", f"{shown(file.path)} ({file.media_type}, {file.size_bytes} bytes)") for file in task.files),
        ("error", f"{shown(task.error.code)}: {shown(task.error.detail)}" if task.error else ""),
    ]
    return [(name, text) for name, text in facts if text]


def watch(
    context: typer.Context,
    task_ids: Annotated[
        list[str] | None, typer.Argument(help="Task ids; none: every task that has not ended.", metavar="[ID...]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each change as one line of JSON.")] = False,
) -> None:
    """
    Follow tasks until they have ended.
    """
    try:
        finish(_watch(context.obj, task_ids or [], as_json))
    except KeyboardInterrupt:
        say("The tasks go on.")
        raise typer.Exit(Exit.INTERRUPTED) from None


async def _watch(where: Where, task_ids: list[str], as_json: bool) -> Exit:
    from vidrelay.cli.live import display, follow
    from vidrelay.cli.words import ending

    async with where.client() as client:
        watched = [await client.task(task_id) for task_id in task_ids] if task_ids else await _unended(client)
        if not watched:
            say("No task is under way.")
            return Exit.DONE
        with display(named=True, quiet=as_json) as screen:
            found = await follow(client, watched, (lambda task: out_json(task.json)) if as_json else screen.show)
    for task in found.values():
        if len(found) == 1 or task.state is State.UNCERTAIN:
            say(ending(task))
    return max((exit_of(task.state) for task in found.values()), default=Exit.DONE)


async def _unended(client: "Client") -> list["TaskView"]:
    states = sorted(LIVE)
    found, cursor = await client.tasks(states=states, limit=200)
    while cursor:
        more, cursor = await client.tasks(states=states, limit=200, cursor=cursor)
        found += more
    return found[::-1]


def cancel(context: typer.Context, task_ids: Ids, as_json: AsJson = False) -> None:
    """
    Stop tasks, here and where the provider can.
    """
    finish(_cancel(context.obj, task_ids, as_json))


async def _cancel(where: Where, task_ids: list[str], as_json: bool) -> Exit:
    from vidrelay.cli.words import cancelled

    status = Exit.DONE
    async with where.client() as client:
        # Those in line go first, the last of them first: a place that frees must not be taken by one of them.
        for task_id in await _last_first(client, task_ids):
            try:
                task = await client.cancel(task_id)
            except RequestError as error:
                # One that cannot be stopped must not keep the others going.
                status = max(status, exit_of_error(error))
                for line in fault_lines(error):
                    say(line)
                continue
            out_json(task.json) if as_json else say(f"{task.id}  {cancelled(task)}")
    return status


async def _last_first(client: "Client", task_ids: list[str]) -> list[str]:
    """
    The ids, each once: of tasks that are in line here, from its end on, then of all others.
    """
    if len(task_ids) == 1:
        return task_ids
    places: dict[str, int] = {}
    for task_id in task_ids:
        try:
            task = await client.task(task_id)
        except RequestError:
            # To stop it will say why.
            places[task_id] = -1
        else:
            places[task_id] = -1 if task.ahead is None else task.ahead
    return sorted(places, key=lambda task_id: -places[task_id])


def resolve(
    context: typer.Context,
    task_id: Id,
    *,
    retry: Annotated[bool, typer.Option("--retry", help="Send it again, even if it may be paid twice.")] = False,
    adopt: Annotated[
        str | None, typer.Option("--adopt", help="The provider has it, under this id.", metavar="REMOTE_ID")
    ] = None,
    abandon: Annotated[bool, typer.Option("--abandon", help="Give it up; it becomes cancelled.")] = False,
    as_json: AsJson = False,
) -> None:
    """
    Settle a task of which it is uncertain whether the provider took it.
    """
    if retry + (adopt is not None) + abandon != 1:
        raise InvalidRequest("say exactly one of --retry, --adopt REMOTE_ID and --abandon")
    action = Resolution.RETRY if retry else Resolution.ADOPT if adopt is not None else Resolution.ABANDON
    finish(_resolve(context.obj, task_id, action, adopt, as_json))


async def _resolve(where: Where, task_id: str, action: Resolution, remote_id: str | None, as_json: bool) -> Exit:
    from vidrelay.cli.words import stage

    async with where.client() as client:
        task = await client.resolve(task_id, action, remote_id=remote_id)
    out_json(task.json) if as_json else say(f"{task.id}  {stage(task)}")
    return Exit.DONE


def result(
    context: typer.Context,
    task_id: Id,
    output: Annotated[
        str, typer.Option("-o", "--output", help="The file, or a directory.", metavar="FILE", show_default=False)
    ],
    as_json: AsJson = False,
) -> None:
    """
    Save a done task's files.
    """
    finish(_result(context.obj, task_id, output, as_json))


async def _result(where: Where, task_id: str, output: str, as_json: bool) -> Exit:
    from vidrelay.cli.making import save_all
    from vidrelay.core.errors import WrongState

    async with where.client() as client:
        task = await client.task(task_id)
        if task.state is not State.DONE:
            raise WrongState(f"Task {task.id} is {task.state}.", hint=f"Follow it: vidrelay watch {task.id}")
        paths = await save_all(client, task, output, told=say if as_json else out)
    if as_json:
        out_json({"taskId": task.id, "paths": [str(path) for path in paths]})
    return Exit.DONE


def finish(work: Coroutine[Any, Any, Exit]) -> None:
    """
    Run a command to its end and exit with its status.
    """
    status = asyncio.run(work)
    raise typer.Exit(status)
