"""
Holds the pages on security to the tests that they name.
"""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent
PAGES = {"security": 45, "checklist": 55}
"""How many lines each of them has at least."""
NAMED = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


def rows(page: str) -> list[str]:
    """
    Each line of the page's tables of threats.
    """
    tables = (TESTS.parent / f"docs/explanation/{page}.md").read_text(encoding="utf-8").split("## At full size")[0]
    heads = ("| ---", "| what could", "| line |")
    return [line for line in tables.splitlines() if line.startswith("| ") and not line.startswith(heads)]


def functions(path: Path) -> set[str]:
    """
    The functions of a module.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("page", PAGES)
def test_every_threat_has_a_test_and_every_test_that_is_named_exists(page: str) -> None:
    """
    No line of the page promises what nothing holds.
    """
    assert len(rows(page)) >= PAGES[page]
    assert [row for row in rows(page) if not NAMED.search(row)] == []
    named = {(file, name) for row in rows(page) for file, name in NAMED.findall(row)}
    files = {file: functions(TESTS / file) for file, _ in named}
    assert sorted(f"{file}::{name}" for file, name in named if name not in files[file]) == []


def test_every_part_of_the_proof_is_named_in_the_checklist_and_no_other() -> None:
    """
    A line that leans on the proof leans on a part that runs.
    """
    named = re.findall(r"part `(\w+)` of the proof", "".join(rows("checklist")))
    parts = (Path(__file__).parent / "proof.py").read_text(encoding="utf-8").partition("PARTS:")[2].partition("}")[0]
    assert sorted(named) == sorted(re.findall(r'^    "(\w+)": \w+,$', parts, re.MULTILINE))


def test_every_file_of_this_room_is_named_there() -> None:
    """
    A test of security that the page does not know of is one that nobody finds.
    """
    named = {file for row in rows("security") for file, _ in NAMED.findall(row)}
    ours = {f"security/{path.name}" for path in Path(__file__).parent.glob("test_*.py")}
    assert ours - named == {"security/test_page.py"}
