"""The largest inputs that are read. Larger ones are refused by name, before memory runs out.

A table is held as text, about 100 bytes a cell.
"""

from __future__ import annotations

TABLE_CELLS = 20_000_000  # rows times columns, e.g. a million rounds of ten nodes with switches
TABLE_BYTES = 2**29  # of a CSV file
LOG_BYTES = 2**32  # of an exported study
SYSTEM_BYTES = 2**26  # of a system.json
STANDARD_INPUT_BYTES = 2**24  # of one result
