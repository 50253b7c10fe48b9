"""Converts Fortran's fixed form to free form, which the parser reads, and changed lines back.

Rows and columns stay the same. Source that would change its meaning is refused: tabs at the
beginning, lines beyond column 72, and strings continued on the next line. Blanks inside of words
make the parser fail, so that the call is left alone."""

from __future__ import annotations

from collections.abc import Iterable

from weft.advise.patch.refusal import Refusal

LABEL, WIDTH = 5, 72  # columns of the continuation mark and of the end of a statement
MARKS = ("c", "*", "!", "d")  # a line with one of these in its first column is a comment
CONTINUED = "     & "


def comment_at(line: str) -> int:
    """Returns the column at which a comment begins; the end of the line if there is none."""
    quote = ""
    for column, letter in enumerate(line):
        if letter == quote:
            quote = ""
        elif letter in "'\"" and not quote:
            quote = letter
        elif letter == "!" and not quote and column != LABEL:
            return column
    if quote:
        raise Refusal("a string of its file goes on in the next line, in fixed form")
    return len(line)


def is_comment(line: str) -> bool:
    return line[:1].lower() in MARKS or (line.lstrip()[:1] == "!" and line[LABEL:6] != "!")


def in_free_form(data: bytes) -> bytes:
    lines = data.decode(errors="surrogateescape").split("\n")
    last = -1  # index of the latest line that may be continued
    for number, line in enumerate(lines):
        text = line.rstrip()
        if not text or text.startswith("#"):
            continue
        if is_comment(text):
            lines[number] = "!" + line[1:] if line[0] != " " else line
            continue
        check_columns(text, number + 1)
        if text[LABEL : LABEL + 1] in ("", " ", "0"):
            lines[number] = f"{line[:LABEL]} {line[LABEL + 1 :]}"
        elif last < 0:
            raise Refusal(f"line {number + 1} of its file continues no line")
        else:
            lines[number] = f"{line[:LABEL]}&{line[LABEL + 1 :]}"
            end = comment_at(lines[last])
            lines[last] = f"{lines[last][:end].rstrip()} &{lines[last][end:]}"
        last = number
    return "\n".join(lines).encode(errors="surrogateescape")


def check_columns(text: str, number: int) -> None:
    if "\t" in text[: LABEL + 1]:
        raise Refusal(f"line {number} of its file, in fixed form, begins with a tab")
    if len(text[: comment_at(text)].rstrip()) > WIDTH:
        raise Refusal(f"line {number} of its file, in fixed form, is longer than {WIDTH} columns")


def in_fixed_form(lines: Iterable[str]) -> tuple[str, ...]:
    """Converts lines of free form to fixed form. A statement may be continued on the next line."""
    found: list[str] = []
    statement = ""
    for line in "\n".join(lines).split("\n"):
        end = comment_at(line)
        code, comment = line[:end].rstrip(), line[end:]
        if comment:
            found.append(comment)
        goes_on = code.endswith("&")
        own = code.removesuffix("&").rstrip()
        statement = f"{statement} {own.lstrip().removeprefix('&').lstrip()}" if statement else own
        if not goes_on and statement:
            found += wrapped(statement)
            statement = ""
    return tuple(found)


def wrapped(statement: str) -> list[str]:
    """Splits a statement into lines of fixed form, each of which ends behind a comma."""
    found, line = [], ""
    for part in parts(statement):
        if line and len(line) + len(part.rstrip()) > WIDTH:
            found.append(line.rstrip())
            line = CONTINUED + part.lstrip()
        else:
            line += part
    found.append(line.rstrip())
    if any(len(one) > WIDTH for one in found):
        raise Refusal("its change does not fit into the columns of fixed form")
    return found


def parts(statement: str) -> list[str]:
    """Splits a statement behind its commas outside of strings."""
    found, quote = [""], ""
    for letter in statement:
        found[-1] += letter
        if letter in "'\"" and quote in ("", letter):
            quote = "" if quote else letter
        elif letter == "," and not quote:
            found.append("")
    return found
