"""
Holds the checkout to the house's rules that no other tool looks after.
"""

import ast
import re
import statistics
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "vidrelay"
# Put together here, so that this file is none that names them.
HOSTS = [r"py" + r"pi\.org", "python" + "hosted", r"registry\." + "npmjs", r"deb\." + r"debian\.org", r"proxy\.golang"]
PLACES = ["/" + place + "/" for place in ("work", "root", "farm", r"tmp/w", r"home/\w+")]
FORBIDDEN = re.compile("|".join([*HOSTS, *PLACES]))
# `logging` hands on what it is given; `jwt` signs in memory.
PURE = [
    *("base64", "binascii", "collections", "dataclasses", "datetime", "email.utils", "enum", "fractions", "functools"),
    *("hashlib", "hmac", "itertools", "json", "jwt", "logging", "math", "operator", "re", "string", "types", "typing"),
    *("unicodedata", "urllib.parse", "uuid", "zoneinfo", "vidrelay.core", "vidrelay.providers"),
]


def tracked() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout: what is tracked cannot be told")
    told = subprocess.run(
        ["git", "ls-files", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / path for path in told.stdout.split("\0") if path and (ROOT / path).is_file()]


def contracts() -> dict[str, dict[str, object]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    return {contract["id"]: contract for contract in settings["contracts"]}


def test_no_tracked_file_names_a_registry_or_a_place_on_one_machine() -> None:
    """
    A checkout works wherever it is, and with whatever registry its user has.
    """
    found = []
    for path in tracked():
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}:{n}" for n, line in enumerate(lines, 1) if FORBIDDEN.search(line)]
    assert found == []


@pytest.mark.parametrize(
    "path", [ROOT / "constraints.txt", *ROOT.glob("tests/sdks/environments/*.txt")], ids=lambda path: path.stem
)
def test_constraints_hold_names_and_versions_only(path: Path) -> None:
    """
    One `name==version` a line, no address, no option, each name once.
    """
    lines = path.read_text().splitlines()
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.!+_-]*", line) for line in lines)
    names = [re.sub(r"[-_.]+", "-", line.split("==")[0].lower()) for line in lines]
    assert len(names) == len(set(names))


def test_every_dependency_is_constrained() -> None:
    """
    What pyproject.toml asks for has its one version in constraints.txt.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {
        re.split(r"[\[<>=; ]", one)[0] for one in project["dependencies"] + project["optional-dependencies"]["dev"]
    }
    constrained = {line.split("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines()}
    assert wanted <= constrained


def test_every_room_has_its_place_in_the_contracts() -> None:
    """
    The layers name every room, and nothing that is not there; only the fakes stand beside them.
    """
    found = contracts()
    assert {"layers", "face-and-scheduler", "core-is-pure", "no-fakes"} <= set(found)
    layers = found["layers"]
    assert layers["exhaustive"] is True
    assert layers["exhaustive_ignores"] == ["testing"]
    rooms = {room for layer in layers["layers"] for room in layer.split(" | ")}  # type: ignore[attr-defined]
    there = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert rooms == there - {"__init__", "testing"}


@pytest.mark.parametrize("room", sorted(SOURCE.rglob("__init__.py")), ids=lambda path: path.parent.name)
def test_every_room_says_what_it_is_for(room: Path) -> None:
    """
    A package's docstring is there, and those of the first floor say what it may import.
    """
    said = ast.get_docstring(ast.parse(room.read_text()))
    assert said
    if room.parent.parent == SOURCE:
        assert "import" in said


def is_sentence(said: str | None, name: str) -> bool:
    """
    Whether a docstring begins with a sentence that says more than the test's name.
    """
    first = (said or "").split("\n\n")[0]
    return first.endswith(".") and re.sub(r"\W+", "_", first.lower()).strip("_") != name.removeprefix("test_")


def test_every_test_says_in_a_sentence_what_it_holds() -> None:
    """
    The docstring of a test function begins with a sentence that is not its name over again.
    """
    tests = [
        (path, node)
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]
    silent = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path, node in tests
        if not is_sentence(ast.get_docstring(node), node.name)
    ]
    assert len(tests) > 1000
    assert silent == []


def imported(path: Path) -> set[str]:
    """
    The modules that a file imports; of `from a import b`, both `a` and `a.b`.
    """
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            names |= {node.module or "", *(f"{node.module}.{one.name}" for one in node.names)}
    return names


def is_pure(module: str) -> bool:
    """
    Whether a module, or a name of one, does no I/O: those that are known not to, and rooms that are held to it.
    """
    return any(module == one or module.startswith(f"{one}.") for one in PURE) and not any(
        module == one or module.startswith(f"{one}.") for one in ("vidrelay.providers.preview", "jwt.PyJWKClient")
    )


ADAPTERS = sorted(path for path in (SOURCE / "providers").rglob("*.py") if "preview" not in path.parts)


@pytest.mark.parametrize("path", ADAPTERS, ids=lambda path: path.relative_to(SOURCE / "providers").as_posix())
def test_no_provider_does_io(path: Path) -> None:
    """
    An adapter builds calls and reads replies: it imports nothing that could make one, opens nothing itself, and has no
    time or chance of its own (`now` is the account's, which ruff holds it to).
    """
    names = imported(path)
    if path.name == "registry.py":  # it finds the adapters, and speaks with nobody
        names = {name for name in names if not name.startswith("importlib")}
    assert {name for name in names if not is_pure(name)} == set()
    calls = [node.func for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    named = {one.id for one in calls if isinstance(one, ast.Name)}
    assert named & {"open", "print", "input", "exec", "eval", "__import__"} == set()
    drawn = {one.attr for one in calls if isinstance(one, ast.Attribute)} | names
    assert drawn & {"now", "utcnow", "today", "uuid1", "uuid4", "uuid.uuid1", "uuid.uuid4"} <= {"now"}


def test_the_median_adapter_is_short() -> None:
    """
    What providers share is in the room they share, so that an adapter reads top to bottom.
    """
    lengths = [len(path.read_text().splitlines()) for path in ADAPTERS if path.name == "adapter.py"]
    assert statistics.median(lengths) < 250, sorted(lengths)


def test_every_sdk_program_is_run() -> None:
    """
    Each program of tests/sdks/programs is named in a test or shared by programs that are, and its environment is one
    that `make sdks` makes.
    """
    folder = ROOT / "tests" / "sdks"
    told = "".join(path.read_text(encoding="utf-8") for path in folder.glob("test_*.py"))
    programs = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("programs/*.py")}
    run = {name for name in programs if f'"{name}"' in told}
    shared = {name for one in run for name in re.findall(r"^(?:from|import) (\w+)", programs[one], re.MULTILINE)}
    assert programs.keys() - run - shared == set()
    environments = {path.stem for path in folder.glob("environments/*.txt")}
    assert set(re.findall(r'environment="(\w+)"', told)) <= environments


def test_no_room_or_module_is_a_cupboard() -> None:
    """
    A name says what is inside.
    """
    names = {part for path in SOURCE.rglob("*.py") for part in path.relative_to(SOURCE).with_suffix("").parts}
    assert names & {"utils", "util", "common", "misc", "helpers", "manager", "base"} == set()


def test_the_changelog_has_the_version_and_what_comes_next() -> None:
    """
    Under Unreleased goes what is being done; the version of pyproject.toml has its own heading.
    """
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert version in [heading.split()[0] for heading in headings]
