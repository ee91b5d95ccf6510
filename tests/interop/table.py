# SPDX-License-Identifier: Apache-2.0
"""The tables of results, in Markdown, printed at the end of a session."""

TABLES = {}
NOTES = []


def note(name, row, column, value):
    TABLES.setdefault(name, {}).setdefault(row, {})[column] = value


def absent(name, row, column, reason):
    note(name, row, column, "-")
    if reason not in NOTES:
        NOTES.append(reason)


def lines():
    for name, rows in TABLES.items():
        columns = []
        for cells in rows.values():
            columns += [column for column in cells if column not in columns]
        yield ""
        yield f"| {name} | " + " | ".join(columns) + " |"
        yield "|---" * (len(columns) + 1) + "|"
        for row, cells in rows.items():
            yield f"| {row} | " + " | ".join(
                cells.get(column, "") for column in columns) + " |"
    if NOTES:
        yield ""
        for text in NOTES:
            yield f"- {text}"
