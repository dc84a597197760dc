"""
`generate`: one clip, from a prompt to a file.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidrelay.cli.request import extra_from, number_from, reference_from, target_for
from vidrelay.cli.terminal import Exit, Where, exit_of, out, out_json, say, shown
from vidrelay.core.task import Priority, Request, State

if TYPE_CHECKING:
    from vidrelay.client.calls import Client
    from vidrelay.client.views import TaskView


def generate(
    context: typer.Context,
    prompt: Annotated[str, typer.Argument(help="What to make.", metavar="PROMPT", show_default=False)],
    *,
    account: Annotated[str | None, typer.Option(help="Which account; else the default one.", metavar="NAME")] = None,
    model: Annotated[str | None, typer.Option(help="The provider's model.", metavar="NAME")] = None,
    aspect_ratio: Annotated[str | None, typer.Option(help="As in 16:9.", metavar="W:H")] = None,
    duration: Annotated[str | None, typer.Option(help="Seconds.", metavar="SECONDS")] = None,
    resolution: Annotated[str | None, typer.Option(help="As in 720p.", metavar="NAME")] = None,
    seed: Annotated[
        int | None, typer.Option(help="The same seed gives the same clip where the model allows.", metavar="N")
    ] = None,
    style: Annotated[str | None, typer.Option(help="A style of the provider's.", metavar="NAME")] = None,
    negative: Annotated[str | None, typer.Option(help="What must not be seen.", metavar="TEXT")] = None,
    ref: Annotated[
        list[str] | None,
        typer.Option(help="A reference image: a file, an address or an asset id. May be repeated.", metavar="REF"),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A parameter of the provider's own, NAME=VALUE. May be repeated.", metavar="K=V"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Make another version even if there is one already.")] = False,
    output: Annotated[
        str | None, typer.Option("-o", "--output", help="Save the file here, or in this directory.", metavar="FILE")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the task as JSON.")] = False,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Submit only; print the task's id.")] = False,
) -> None:
    """
    Make a clip and save it. Asking again for the same costs nothing.
    """
    request = Request(
        prompt=prompt,
        account=account,
        model_version=model,
        aspect_ratio=aspect_ratio,
        duration=None if duration is None else number_from(duration, "--duration"),
        resolution=resolution,
        seed=seed,
        style_preset=style,
        negative_prompt=negative,
        references=tuple(reference_from(text, Path.cwd()) for text in ref or ()),
        extra=extra_from(settings or []),
        force_refresh=force,
        priority=Priority.INTERACTIVE,
    )
    making = _Making(context.obj, request, output=output, as_json=as_json, no_wait=no_wait)
    try:
        status = asyncio.run(making.run())
    except KeyboardInterrupt:
        raise typer.Exit(making.interrupted()) from None
    raise typer.Exit(status)


class _Making:
    """
    One run of `generate`; remembers the task, to say how to come back to it.
    """

    def __init__(self, where: Where, request: Request, *, output: str | None, as_json: bool, no_wait: bool) -> None:
        self._where = where
        self._request = request
        self._output = output
        self._as_json = as_json
        self._no_wait = no_wait
        self._task: TaskView | None = None

    async def run(self) -> Exit:
        from vidrelay.cli.live import display, follow
        from vidrelay.cli.words import ending

        async with self._where.client(app="vidrelay-cli") as client:
            task = self._task = await client.generate(self._request)
            say(_greeting(task))
            if self._no_wait:
                out_json(task.json) if self._as_json else out(task.id)
                return exit_of(task.state)
            with display(quiet=task.ended) as screen:
                found = await follow(client, [task], screen.show)
            ended = found[task.id]
            if not task.from_cache:
                say(ending(ended))
            if ended.state is State.DONE:
                await save_all(client, ended, self._output, told=out if not self._as_json else say)
            if self._as_json:
                out_json({**ended.json, "deduped": task.deduped, "fromCache": task.from_cache})
            return exit_of(ended.state)

    def interrupted(self) -> Exit:
        from vidrelay.cli.words import come_back

        if self._task is None:
            say("Interrupted before the relay answered. Look whether the task was made: vidrelay tasks")
        elif not self._task.ended:
            say(come_back(self._task.id))
        return Exit.INTERRUPTED


def _greeting(task: "TaskView") -> str:
    if task.from_cache:
        how = "found in the cache: made before, so nothing is paid again"
    elif task.deduped and task.state is State.UNCERTAIN:
        how = "joined: it is unclear whether the provider took this very clip"
    elif task.deduped:
        how = "joined: this very clip is being made already"
    else:
        how = f"accepted for {shown(task.account)}" + (f", {shown(task.model_version)}" if task.model_version else "")
    return f"{task.id}  {how}"


async def save_all(
    client: "Client", task: "TaskView", output: str | None, *, told: Callable[[str], None]
) -> list[Path]:
    """
    Save every file of a done task, or leave it in the cache where no place is named; tells each path.
    """
    paths = []
    for file in task.files:
        target = target_for(
            output, prompt=task.prompt, task_id=task.id, index=file.index, extension=Path(file.path).suffix
        )
        if target is None:
            path = Path(file.path)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            path = await client.save_result(task.id, target, index=file.index)
        told(str(path))
        paths.append(path)
    return paths
