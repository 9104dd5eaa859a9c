"""What the compiler inserted, in a file: `[inserted]` with the pass and the reason of each element.

In:  a table of tables, with its place
Out: Inserted by name of a model or target of a connection, and back
"""

from __future__ import annotations

from hocket.files.toml.forms import TEXT
from hocket.files.toml.kinds import Field, kind
from hocket.files.toml.named import Named
from hocket.model import Inserted

INSERTED = kind(
    "an insertion",
    Inserted,
    Field("by", TEXT, "the pass of the compiler"),
    Field("reason", TEXT, "why it is there"),
    tagged=False,
)

INSERTIONS = Named(
    "inserted", INSERTED, "an insertion", 'loop = { by = "loops", reason = "..." }', inline=True
)
