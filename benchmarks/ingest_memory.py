"""Memory of launch.ingest on a CSV that is larger: `python benchmarks/ingest_memory.py [GB]`, 10 GB if none is named.

The games of ingest_table.py. The exit code is 1 where launch.ingest needs more than 4 GiB.
"""

import sys
import tempfile
from pathlib import Path

from ingest_table import AGENTS, FRAMES, MOST_MEMORY, spent, whole, write_tables

TRIED = 10  # games, of which the size of all follows


def main() -> int:
    """Write the file, ingest it in a process of its own, and say what that took."""
    wanted = float(sys.argv[1]) * 1e9 if len(sys.argv) > 1 else 10e9
    with tempfile.TemporaryDirectory() as folder:
        path, rows = Path(folder) / "table.csv", TRIED * FRAMES * AGENTS
        write_tables([path], rows)
        write_tables([path], int(rows * wanted / path.stat().st_size))
        found = spent(whole, path, Path(folder))
        print(f"CSV of {path.stat().st_size / 1e9:.1f} GB: {found.seconds:.0f} s, {found.memory:.2f} GiB")
        return int(found.memory > MOST_MEMORY)


if __name__ == "__main__":
    sys.exit(main())
