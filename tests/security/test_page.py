"""
Holds the page on security to the tests that it names.
"""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
PAGE = TESTS.parent / "docs/explanation/security.md"
NAMED = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


def rows() -> list[str]:
    """
    Each line of the page's tables of threats.
    """
    tables = PAGE.read_text(encoding="utf-8").split("## At full size")[0]
    return [
        line for line in tables.splitlines() if line.startswith("| ") and not line.startswith(("| ---", "| what could"))
    ]


def functions(path: Path) -> set[str]:
    """
    The functions of a module.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_threat_has_a_test_and_every_test_that_is_named_exists() -> None:
    """
    No line of the page promises what nothing holds.
    """
    assert len(rows()) > 45
    assert [row for row in rows() if not NAMED.search(row)] == []
    named = {(file, name) for row in rows() for file, name in NAMED.findall(row)}
    files = {file: functions(TESTS / file) for file, _ in named}
    assert sorted(f"{file}::{name}" for file, name in named if name not in files[file]) == []


def test_every_file_of_this_room_is_named_there() -> None:
    """
    A test of security that the page does not know of is one that nobody finds.
    """
    named = {file for row in rows() for file, _ in NAMED.findall(row)}
    ours = {f"security/{path.name}" for path in Path(__file__).parent.glob("test_*.py")}
    assert ours - named == {"security/test_page.py"}
