"""Tests the table of the Python package's folders in docs/ARCHITECTURE.md, which says which folder
may import which."""

import ast
from pathlib import Path

import rooms

from weft.system import installation

PACKAGE = installation.PACKAGE
ROOMS = rooms.rooms_below("python/weft")


def modules(package: Path) -> dict[str, Path]:
    """Returns the files of modules by their import names. The file of a package is its
    __init__.py."""
    return {
        ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(
            ".__init__"
        ): path
        for path in sorted(package.rglob("*.py"))
    }


def imports(path: Path, known: dict[str, Path]) -> set[str]:
    """Returns the modules of the package that a module imports, including imports in functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{one.name}" for one in node.names}
            found |= names & known.keys() or {node.module}
    return found & known.keys()


def graph(package: Path) -> dict[str, set[str]]:
    known = modules(package)
    return {name: imports(path, known) - {name} for name, path in known.items()}


def room_of(module: str, package: Path) -> str:
    inside = module.split(".")[1:2]
    return inside[0] if inside and (package / inside[0]).is_dir() else ""


def against_the_order(package: Path) -> list[str]:
    """Returns imports that the table does not allow. All modules may import the package itself, for
    its version."""
    allowed = {room: {room, *rooms.may_use(room, ROOMS)} for room in ROOMS}
    return [
        f"{module} imports {other}"
        for module, others in graph(package).items()
        for other in sorted(others - {package.name})
        if room_of(other, package) not in allowed[room_of(module, package)]
    ]


def test_every_folder_is_in_the_table():
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert {*folders, ""} == ROOMS.keys()


def test_no_room_uses_itself_through_others():
    assert [room for room in ROOMS if room in rooms.may_use(room, ROOMS)] == []


def test_each_room_imports_what_the_table_says():
    assert against_the_order(PACKAGE) == []


def test_no_modules_import_each_other():
    assert rooms.circles(graph(PACKAGE)) == []


def test_only_the_command_line_and_the_interface_lie_at_the_root():
    files = {path.name for path in PACKAGE.glob("*.py")}
    assert files == {"__init__.py", "__main__.py", "cli.py", "results.py"}


def write(package: Path, text_of: dict[str, str]) -> None:
    for name, text in text_of.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(text)


def test_an_import_against_the_order_is_found(tmp_path):
    package = tmp_path / "weft"
    write(package, {"__init__.py": "", "lab/lab.py": "", "bench/store.py": "import weft.lab.lab\n"})
    assert against_the_order(package) == []
    write(package, {"lab/lab.py": "def late():\n    from weft.bench import store, here\n"})
    assert against_the_order(package) == ["weft.lab.lab imports weft.bench.store"]
    assert rooms.circles(graph(package)) == [{"weft.lab.lab", "weft.bench.store"}]


def test_the_package_itself_is_for_all(tmp_path):
    package = tmp_path / "weft"
    write(package, {"__init__.py": "", "cli.py": "", "data/json.py": "from weft import version\n"})
    assert against_the_order(package) == []
    write(package, {"data/json.py": "from weft import cli\n"})
    assert against_the_order(package) == ["weft.data.json imports weft.cli"]
