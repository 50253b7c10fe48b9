"""Writes the lines of a change that handle its request, in the language of the source."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Optional

from weft.advise.patch.calls import Found
from weft.advise.patch.fortran import Interface, touch


@dataclass
class Request:
    """The request of a changed call. In Fortran it has an interface, and the variables whose memory
    MPI gets."""

    found: Found
    name: str
    face: Optional[Interface] = None
    memory: list[str] = field(default_factory=list)

    @property
    def language(self) -> str:
        return self.found.source.language

    @property
    def error(self) -> str:
        """Returns the variable that gets error codes."""
        own = self.found.error
        return "" if own is None else self.found.source.text(own)

    def argument(self) -> str:
        return self.name if self.language == "fortran" else f"&{self.name}"

    def made_null(self) -> str:
        if self.language == "python":
            return f"{self.name} = None"
        declared = "" if self.language == "fortran" else "MPI_Request "
        end = "" if self.language == "fortran" else ";"
        return f"{declared}{self.name} = MPI_REQUEST_NULL{end}"

    def if_null(self, lines: Iterable[str]) -> list[str]:
        return self._if("is None", "==", lines)

    def if_not_null(self, lines: Iterable[str]) -> list[str]:
        return self._if("is not None", "!=" if self.language != "fortran" else "/=", lines)

    def _if(self, of_python: str, operator: str, lines: Iterable[str]) -> list[str]:
        if self.language == "python":
            return [f"if {self.name} {of_python}:", *(f"    {one}" for one in lines)]
        head, end = (
            ("if ({}) then", "end if") if self.language == "fortran" else ("if ({}) {{", "}")
        )
        condition = f"{self.name} {operator} MPI_REQUEST_NULL"
        return [head.format(condition), *(f"  {one}" for one in lines), end]

    def started(self) -> list[str]:
        """Returns the lines that start a persistent request. In Fortran they make the compiler
        store the sent data first, since the start does not name them."""
        if self.language == "python":
            return [f"{self.name}.Start()"]
        return [*self._touches(), self._called("MPI_Start")]

    def waited_for(self, may_be_null: bool = False) -> list[str]:
        if self.language == "python":
            wait = [f"{self.name}.Wait()"]
            return self.if_not_null(wait) if may_be_null else wait
        word = "MPI_STATUS_IGNORE"
        return [self._called("MPI_Wait", word), *self._touches()]

    def freed(self) -> list[str]:
        if self.language == "python":
            return self.if_not_null([f"{self.name}.Free()"])
        return self.if_not_null([self._called("MPI_Request_free")])

    def _called(self, function: str, *more: str) -> str:
        """Returns the call of a function in C or Fortran. The call that frees a request returns no
        error code in C."""
        if self.language == "fortran":
            words = [self.name, *more, *filter(None, [self.error])]
            return f"call {function}({', '.join(words)})"
        front = f"{self.error} = " if self.error and function != "MPI_Request_free" else ""
        return f"{front}{function}({', '.join([self.argument(), *more])});"

    def _touches(self) -> list[str]:
        return [touch(self.face, self.name, one) for one in self.memory] if self.face else []
