"""Which columns of a table are classes and which are quantities, and as what they are read."""

from collections.abc import Mapping

import pyarrow as pa

from data_gen.ingest.readers.chunks import Source, family, is_time_stamp, read_chunks
from data_gen.ingest.readers.columns import Columns, asked
from data_gen.ingest.readers.lines import NUMBER, WHOLE
from data_gen.trajectory import InputError

TEXT = pa.dictionary(pa.int32(), pa.string())


def class_columns(source: Source, columns: Columns) -> tuple[str, ...]:
    """Features that are text; labels and a single action that are text, truth values or whole numbers; `categories`.

    Raises InputError where one of several actions is text.
    """
    whole_too = [*columns.labels, *(columns.actions if len(columns.actions) == 1 else [])]
    found = []
    for name in [*columns.features, *columns.actions, *columns.labels]:
        kind = source.types[name]
        discrete = pa.types.is_integer(kind) or pa.types.is_boolean(kind)
        if name in columns.categories or is_text(kind) or (name in whole_too and discrete):
            if name not in columns.numbers:
                found.append(name)
    if len(columns.actions) > 1 and (wrong := [name for name in columns.actions if name in found]):
        raise InputError(
            f"{source.path}: columns.actions are {', '.join(columns.actions)}, but {wrong[0]!r} is text. Actions are "
            f"several numbers, or one column of classes."
        )
    return tuple(found)


def is_text(kind: pa.DataType) -> bool:
    """Whether a column holds names: neither numbers nor truth values, nor nothing at all."""
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return not numeric and not pa.types.is_boolean(kind) and not pa.types.is_null(kind)


def read_as(source: Source, columns: Columns, classes: tuple[str, ...]) -> dict[str, pa.DataType]:
    """The type of each column that is read, where the file is CSV and has none: names as text, quantities as floats."""
    names = (columns.episode, columns.agent, columns.group)
    return {name: _type_of(source.types[name], name, columns, names, classes) for name in asked(columns)}


def settle(source: Source, columns: Columns) -> Source:
    """The source with a type for columns of a CSV file that are empty in its first chunk; each is read to the end.

    Raises InputError where a column holds one thing in one file and another in the next: stamps and numbers of frames,
    or truth values and numbers, would be taken for the same.
    """
    free = (columns.episode, columns.agent, columns.group, *columns.categories)
    for name in asked(columns):
        _check_alike(source, name, () if name not in free else ("numbers", "text"))
    unknown = [name for name in [*columns.features, *columns.actions, *columns.labels] if _is_open(source, name)]
    return source._replace(types={**source.types, **{name: _found(source, name) for name in unknown}})


def _check_alike(source: Source, name: str, alike: tuple[str, ...]) -> None:
    """All files hold the same in a column, or nothing; what is `alike` may be mixed."""
    kinds = {family(file.types[name]): file.path for file in reversed(source.files)}
    kinds.pop("nothing", None)
    if len(kinds) > 1 and not set(kinds) <= set(alike):
        (one, first), (two, other) = list(kinds.items())[:2]
        raise InputError(
            f"{source.path}: column {name!r} holds {one} in {first} and {two} in {other}. Write it alike in all files, "
            f"or read them as two sources."
        )


def _is_open(source: Source, name: str) -> bool:
    return source.is_text and pa.types.is_null(source.types[name])


def _found(source: Source, name: str) -> pa.DataType:
    forms = {pa.int64(): WHOLE, pa.float64(): NUMBER}
    for _, chunk in read_chunks(source, {name: pa.string()}):
        values = [value for value in chunk.column(0).unique().to_pylist() if value is not None]
        forms = {kind: form for kind, form in forms.items() if all(form.fullmatch(value) for value in values)}
        if not forms:
            return pa.string()
    return next(iter(forms))


def _type_of(
    kind: pa.DataType, name: str, columns: Columns, names: tuple[str, ...], classes: tuple[str, ...]
) -> pa.DataType:
    if name in classes and name not in columns.categories and not is_text(kind):
        return kind
    if name in names or name in classes:
        return TEXT
    # A column that looked whole or empty in the first chunk may hold any number later.
    return kind if pa.types.is_boolean(kind) or is_time_stamp(kind) else pa.float64()


def kinds(columns: Columns, classes: tuple[str, ...]) -> Mapping[str, str]:
    """How each feature, action and label was read, for provenance."""
    values = [*columns.features, *columns.actions, *columns.labels]
    return {name: "classes" if name in classes else "numbers" for name in values}
