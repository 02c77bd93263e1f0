"""Data sets on disk: shards of named arrays, whole or absent, and how they are split."""
