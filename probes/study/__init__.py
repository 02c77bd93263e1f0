"""The study of docs/study.md, from the tables of its runs."""
