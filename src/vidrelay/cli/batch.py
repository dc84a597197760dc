"""
`batch`: many clips from one table, resumable.

Each row is submitted under an Idempotency-Key made from what it says, so a second run finds the tasks of the first
instead of making new ones: nothing needs to be remembered beside the table. Rows whose file is there already, whole,
are not fetched again.
"""

import asyncio
import csv
import hashlib
import io
import json
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vidrelay.cli.request import number_from, reference_from, slug, value_from
from vidrelay.cli.terminal import Exit, Where, exit_of, exit_of_error, fault_lines, out, out_json, say, shortened
from vidrelay.core.errors import ConfigError, InvalidRequest, RelayUnavailable, RequestError, VidrelayError
from vidrelay.core.task import Priority, Reference, Request, State
from vidrelay.core.wire import request_from_json, request_json

if TYPE_CHECKING:
    from vidrelay.client.calls import Client
    from vidrelay.client.views import TaskView

MAX_ROWS = 10_000
MAX_TABLE_BYTES = 64 * 1024 * 1024
_AT_ONCE = 8
_MOST_RETRIES = 20

_OUTPUT = "output"
_SPELLINGS = {
    "model": "modelVersion",
    "style": "stylePreset",
    "negative": "negativePrompt",
    "aspectratio": "aspectRatio",
    "modelversion": "modelVersion",
    "stylepreset": "stylePreset",
    "negativeprompt": "negativePrompt",
    "forcerefresh": "forceRefresh",
    "ref": "references",
    "refs": "references",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """
    One row of the table: its number, what it asks for, its key, and the name of its file if it gives one.
    """

    number: int
    request: Request
    key: str
    output: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """
    What one line of the table says.
    """

    line: int
    request: Request
    output: str | None


def batch(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A .csv or .jsonl file.", metavar="FILE", show_default=False)],
    *,
    output: Annotated[
        str | None, typer.Option("-o", "--output", help="Save the files in this directory.", metavar="DIR")
    ] = None,
    retry_failed: Annotated[
        bool,
        typer.Option("--retry-failed", help="Make rows again that failed, were cancelled or have lost their file."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print each row's end as one line of JSON.")] = False,
) -> None:
    """
    Make many clips, one a row. Run it again to go on where it stopped: no row is made twice.
    """
    try:
        rows = read_rows(file)
    except InvalidRequest as error:
        raise ConfigError(f"{file}: {error.message}") from error
    running = _Batch(context.obj, rows, output=output, retry_failed=retry_failed, as_json=as_json)
    try:
        status = asyncio.run(running.run())
    except KeyboardInterrupt:
        say("The tasks go on. Run the same command again to collect them.")
        raise typer.Exit(Exit.INTERRUPTED) from None
    raise typer.Exit(status)


# The table ------------------------------------------------------------------------------------------------------------


def read_rows(file: Path) -> list[Row]:
    """
    The rows of a table, each checked before any is submitted.

    Raises:
        InvalidRequest: The file or a row cannot be read; names the line.
    """
    try:
        if file.stat().st_size > MAX_TABLE_BYTES:
            raise InvalidRequest(f"is larger than {MAX_TABLE_BYTES // 1024**2} MiB")
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from error
    match file.suffix.lower():
        case ".csv":
            told = _csv(text, file.absolute().parent)
        case ".jsonl" | ".ndjson":
            told = _jsonl(text, file.absolute().parent)
        case _:
            raise InvalidRequest("must be a .csv or a .jsonl file")
    if not told:
        raise InvalidRequest("has no rows")
    if len(told) > MAX_ROWS:
        raise InvalidRequest(f"has more than {MAX_ROWS} rows")
    _require_apart(told)
    return _keyed(told)


def _csv(text: str, base: Path) -> list[_Told]:
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    rows = []
    try:
        for fields in reader:
            line = reader.line_num
            if None in fields:
                raise InvalidRequest(f"line {line}: has more fields than the heading")
            body = {name: value for name, value in fields.items() if name and value is not None and value.strip()}
            if body:
                rows.append(_request(_from_cells(body, base, line), line))
    except csv.Error as error:
        raise InvalidRequest(f"line {reader.line_num}: {error}") from error
    return rows


def _from_cells(cells: Mapping[str, str], base: Path, line: int) -> dict[str, Any]:
    """
    A row's cells as the fields of a request; a column `extra.NAME` is a parameter of the provider's own.
    """
    body: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    try:
        for heading, cell in cells.items():
            name = heading.strip()
            name = _SPELLINGS.get(name.lower().replace("_", "").replace("-", ""), name)
            if name.startswith("extra."):
                extra[name.removeprefix("extra.")] = value_from(cell)
            elif name == "references":
                found = [reference_from(part.strip(), base) for part in cell.split(";") if part.strip()]
                body[name] = [_reference_fields(reference) for reference in found]
            elif name == "duration":
                body[name] = number_from(cell, name)
            elif name in ("seed", "forceRefresh", "metadata", "extra"):
                body[name] = value_from(cell.strip().lower() if name == "forceRefresh" else cell.strip())
            else:
                body[name] = cell
    except InvalidRequest as error:
        raise InvalidRequest(f"line {line}: {error.field}: {error.message}") from error
    if extra:
        body["extra"] = {**body.get("extra", {}), **extra}
    return body


def _reference_fields(reference: Reference) -> dict[str, str]:
    kinds = {"asset": reference.asset, "path": reference.path, "url": reference.url}
    return {name: value for name, value in kinds.items() if value is not None}


def _jsonl(text: str, base: Path) -> list[_Told]:
    rows = []
    for line, written in enumerate(text.split("\n"), start=1):
        if not written.strip():
            continue
        try:
            body = json.loads(written)
        except (ValueError, RecursionError) as error:
            raise InvalidRequest(f"line {line}: is not JSON") from error
        if not isinstance(body, dict):
            raise InvalidRequest(f"line {line}: is not a JSON object")
        told = _request(body, line)
        paths = tuple(
            replace(one, path=str((base / one.path).absolute())) if one.path else one for one in told.request.references
        )
        rows.append(replace(told, request=replace(told.request, references=paths)))
    return rows


def _request(body: dict[str, Any], line: int) -> _Told:
    output = body.pop(_OUTPUT, None)
    if output is not None and (not isinstance(output, str) or Path(output).name != output or output.startswith(".")):
        raise InvalidRequest(f"line {line}: {_OUTPUT} must be a plain file name")
    try:
        request = request_from_json({"priority": Priority.BATCH.value, **body})
    except InvalidRequest as error:
        raise InvalidRequest(f"line {line}: {error.message}") from error
    return _Told(line=line, request=request, output=output)


def _require_apart(told: Sequence[_Told]) -> None:
    """
    Refuse a table in which a file would be written twice, so that a clip that was paid for would be lost.
    """
    lines: dict[str, list[_Told]] = {}
    for one in told:
        if one.output is not None:
            lines.setdefault(_folded(one.output), []).append(one)
    faults = [
        f"lines {', '.join(str(one.line) for one in alike)}: name the same {_OUTPUT} {alike[0].output!r}"
        for alike in lines.values()
        if len(alike) > 1
    ]
    if faults:
        raise InvalidRequest("; ".join(faults))


def _folded(name: str) -> str:
    """
    The name as a file system reads it that tells neither case nor spelling apart.
    """
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _keyed(told: Sequence[_Told]) -> list[Row]:
    """
    Give each row its key: from what it says, and how often an equal row stood before it.
    """
    seen: Counter[str] = Counter()
    rows = []
    for number, one in enumerate(told, start=1):
        content = json.dumps(request_json(one.request), sort_keys=True, separators=(",", ":"))
        digest = hashlib.sha256(content.encode()).hexdigest()[:40]
        rows.append(Row(number=number, request=one.request, key=f"batch-{digest}-{seen[digest]}", output=one.output))
        seen[digest] += 1
    return rows


# The run --------------------------------------------------------------------------------------------------------------


class _Batch:
    """
    One run of `batch`.
    """

    def __init__(self, where: Where, rows: list[Row], *, output: str | None, retry_failed: bool, as_json: bool) -> None:
        self._where = where
        self._rows = rows
        self._output = Path(output).expanduser() if output else None
        self._retry_failed = retry_failed
        self._as_json = as_json
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._status = Exit.DONE
        self._tasks: dict[int, TaskView] = {}
        # Whose file a name is; those that the table gives come first.
        self._owners = {_folded(row.output): (row.number, 0) for row in rows if row.output is not None}
        self._ended = 0

    async def run(self) -> Exit:
        from vidrelay.cli.live import follow

        if self._output is not None:
            self._output.mkdir(parents=True, exist_ok=True)
        async with self._where.client(app="vidrelay-batch") as client:
            async with asyncio.TaskGroup() as group:
                for row in self._rows:
                    group.create_task(self._submit(client, row))
            say(f"{len(self._tasks)} of {len(self._rows)} rows accepted.")
            unended = {task.id: task for task in self._tasks.values() if not task.ended}
            told: set[str] = set()

            def show(task: "TaskView") -> None:
                if task.ended and task.id not in told:
                    told.add(task.id)
                    say(f"{len(told)} of {len(unended)}  {task.id}  {task.state}  {shortened(task.prompt, 50)}")

            found = await follow(client, list(unended.values()), show) if unended else {}
            for row in self._rows:
                if row.number in self._tasks:
                    task = self._tasks[row.number]
                    await self._end(client, row, found.get(task.id, task))
        return self._status

    async def _submit(self, client: "Client", row: Row) -> None:
        async with self._slots:
            try:
                self._tasks[row.number] = await self._task_for(client, row)
            except RelayUnavailable:
                raise
            except VidrelayError as error:
                # A wrong row must not keep the others from being made.
                self._note(exit_of_error(error))
                for line in fault_lines(error):
                    say(f"row {row.number}: {line}")
                if self._as_json:
                    out_json({"row": row.number, "error": {"code": error.code, "detail": error.message}})

    async def _task_for(self, client: "Client", row: Row) -> "TaskView":
        task = await client.generate(row.request, key=row.key)
        retries = 0
        while self._retry_failed and self._is_lost(task) and retries < _MOST_RETRIES:
            retries += 1
            task = await client.generate(row.request, key=f"{row.key}-r{retries}")
        return task

    def _is_lost(self, task: "TaskView") -> bool:
        if task.state is State.DONE:
            return not all(Path(file.path).is_file() for file in task.files)
        return task.ended

    async def _end(self, client: "Client", row: Row, task: "TaskView") -> None:
        self._note(exit_of(task.state))
        paths: list[Path] = []
        if task.state is State.DONE:
            try:
                paths = [await self._save(client, row, task, index) for index in range(len(task.files))]
            except (RequestError, OSError) as error:
                self._note(Exit.FAILED)
                for line in fault_lines(error):
                    say(f"row {row.number}: {line}")
        if self._as_json:
            out_json({"row": row.number, "task": task.json, "paths": [str(path) for path in paths]})
        else:
            for path in paths:
                out(str(path))

    async def _save(self, client: "Client", row: Row, task: "TaskView", index: int) -> Path:
        file = task.files[index]
        kept = Path(file.path)
        if self._output is None:
            return kept
        width = len(str(len(self._rows)))
        name = row.output or f"{row.number:0{width}d}-{slug(task.prompt)}{kept.suffix}"
        target = self._output / name
        if index:
            target = target.with_name(f"{target.stem}-{index}{target.suffix}")
        owner = self._owners.setdefault(_folded(target.name), (row.number, index))
        if owner != (row.number, index):
            raise RequestError(f"{target} is the file of row {owner[0]}; this one stays in the cache: {kept}")
        if await asyncio.to_thread(_is_whole, target, file.size_bytes, file.sha256):
            return target
        return await client.save_result(task.id, target, index=index)

    def _note(self, status: Exit) -> None:
        self._status = max(self._status, status)


def _is_whole(path: Path, size_bytes: int, sha256: str) -> bool:
    """
    Whether the file is there already, byte for byte.
    """
    try:
        if path.stat().st_size != size_bytes:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == sha256
    except OSError:
        return False
