"""What the compiler inserted, in a file: `[inserted]` with the pass and the reason of each element.

In:  a table of tables, with its place
Out: Insertions by name of a model or target of a connection, and back
"""

from __future__ import annotations

from hocket.files.toml.forms import TEXT
from hocket.files.toml.kinds import Field, table_kind
from hocket.files.toml.named import NamedTablesForm
from hocket.model import Insertion

INSERTED = table_kind(
    "an insertion",
    Insertion,
    Field("by", TEXT, "the pass of the compiler"),
    Field("reason", TEXT, "why it is there"),
    tagged=False,
)

INSERTIONS = NamedTablesForm(
    "inserted", INSERTED, "an insertion", 'loop = { by = "loops", reason = "..." }', inline=True
)
