# SPDX-License-Identifier: Apache-2.0
"""What main.py prints: objects, or the tables of docs/performance.md."""

import json
import os
import platform


def machine():
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo")
                if line.startswith("model name")), platform.machine())
    return {"cpu": cpu, "cpus": os.cpu_count(), "kernel": platform.release()}


def spaced(value):
    return f"{value:,.0f}".replace(",", " ")


def cell(row, name, digits=1):
    """A median and its quartiles."""
    low, high = row[name + "_quartiles"]
    if digits < 0:
        return f"{spaced(row[name])} ({spaced(low)}-{spaced(high)})"
    return f"{row[name]:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def polling_table(rows):
    yield ["a lone client", "poll", "p50 us", "p99 us", "daemon's us an operation",
           "sleeps an operation"]
    for row in rows:
        if "p50_us" in row:
            yield [f"{row['load']}, {row['where']}", row["busy_poll"],
                   cell(row, "p50_us"), f"{row['p99_us']:.0f}",
                   cell(row, "cpu_us_per_op"), f"{row['sleeps_per_op']:.2f}"]
        else:
            yield [row["load"], row["busy_poll"], "", "",
                   cell(row, "idle_us_per_s", 0) + " a second", ""]


def placement_table(rows):
    yield ["connections, in flight each", "shards", "operations a second",
           "daemon's us an operation", "mean batch", "busy", "p50, p99 us"]
    for row in rows:
        busy = f"{row['busy_0']:.0%}"
        if row["placement"] != "1 shard":
            busy += f", {row['busy_1']:.0%}"
        yield [f"{row['connections']}, {row['in_flight']}", row["placement"],
               cell(row, "ops_per_s", -1), cell(row, "cpu_us_per_op"),
               f"{row['mean_batch']:.2f}", busy,
               f"{row['p50_us']:.0f}, {row['p99_us']:.0f}"]


def handover_table(rows):
    yield ["", "p50 us", "p99 us", "a second", "main's us", "the shard's us"]
    for row in rows:
        yield [row["what"], cell(row, "p50_us"), f"{row['p99_us']:.0f}",
               cell(row, "per_s", -1), cell(row, "main_us"), cell(row, "shard_us")]


TABLES = {"polling": polling_table, "placement": placement_table,
          "hand-over": handover_table}


def tables(rows):
    for part, table in TABLES.items():
        those = [row for row in rows if row["part"] == part]
        if those:
            yield list(table(those))


def last_line(rows, rounds):
    it = machine()
    looks = [f"; it looks for {row['looks_us']} us" for row in rows
             if row.get("busy_poll") == "yes"][:1]
    return (f"{it['cpu']}, {it['cpus']} processors, Linux {it['kernel']}; medians of "
            f"{rounds} rounds (quartiles)" + "".join(looks))


def print_markdown(rows, rounds):
    for head, *lines in tables(rows):
        print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
        for line in lines:
            print(f"| {' | '.join(line)} |")
        print()
    print(last_line(rows, rounds))


def print_text(rows, rounds):
    for lines in tables(rows):
        widths = [max(map(len, column)) for column in zip(*lines)]
        for line in lines:
            print("  ".join(text.ljust(n) for text, n in zip(line, widths)).rstrip())
        print()
    print("on", last_line(rows, rounds))


def print_json(rows, rounds):
    for row in rows:
        print(json.dumps(row))
    print(json.dumps({"rounds": rounds, **machine()}))
