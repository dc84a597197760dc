"""
`cache`: what is kept of earlier results.
"""

from typing import Annotated

import typer

from vidrelay.cli.tasks import AsJson, finish
from vidrelay.cli.terminal import Exit, Where, agreed, bulk, out_json, say, table


def build() -> typer.Typer:
    """
    The group of commands.
    """
    app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look after the results that are kept.")
    app.command(name="ls")(ls)
    app.command()(verify)
    app.command()(clear)
    return app


def ls(context: typer.Context, as_json: AsJson = False) -> None:
    """
    List the kept results, those used longest ago first.
    """
    finish(_ls(context.obj, as_json))


async def _ls(where: Where, as_json: bool) -> Exit:
    async with where.client() as client:
        told = await client.cached()
    if as_json:
        out_json(told)
        return Exit.DONE
    results = told.get("results") or []
    table(
        ("task", "size", "saved", "last used"),
        [
            (
                str(one.get("taskId", "")),
                bulk(one.get("bytes", 0)),
                str(one.get("savedAt", "")),
                str(one.get("usedAt", "")),
            )
            for one in results
        ],
        right=frozenset({1}),
    )
    say(f"{bulk(told.get('bytes', 0))} in all")
    return Exit.DONE


def verify(context: typer.Context, as_json: AsJson = False) -> None:
    """
    Forget kept results whose files are no longer whole.
    """
    finish(_verify(context.obj, as_json))


async def _verify(where: Where, as_json: bool) -> Exit:
    async with where.client() as client:
        told = await client.verify_cache()
    if as_json:
        out_json(told)
        return Exit.DONE
    forgotten = told.get("forgotten") or []
    for task_id in forgotten:
        say(f"not whole, forgotten: {task_id}")
    say("Every kept result is whole." if not forgotten else f"{len(forgotten)} forgotten.")
    return Exit.DONE


def clear(
    context: typer.Context,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """
    Delete every kept result. What was paid for must be paid for again.
    """
    if not yes and not agreed("Delete every kept result?"):
        say("Nothing was deleted. Where nobody can be asked, say --yes.")
        raise typer.Exit(Exit.FAILED)
    finish(_clear(context.obj, as_json))


async def _clear(where: Where, as_json: bool) -> Exit:
    async with where.client() as client:
        told = await client.clear_cache()
    if as_json:
        out_json(told)
    else:
        say(f"{told.get('cleared', 0)} results deleted.")
    return Exit.DONE
