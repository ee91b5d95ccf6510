# SPDX-License-Identifier: Apache-2.0
"""What handshake.sh prints: the ratios that are wanted, and tables of rows and ratios."""

import statistics

# (what, case over case, figure, must, aim); the best of several where there is a "|".
WANTED = [
    ("local against OpenSSL 3.5's hybrid", "hybrid-local", "openssl35-hybrid", "cpu_us",
     0.90, 0.80),
    ("local against plain X25519", "hybrid-local", "x25519", "cpu_us", 1.05, 0.97),
    ("daemon against OpenSSL 3.5's hybrid", "hybrid-daemon", "openssl35-hybrid", "cpu_us",
     1.10, 0.95),
    ("auto against the better of both", "hybrid-auto", "hybrid-local|hybrid-daemon",
     "cpu_us", 1.05, 1.02),
    ("the same, PQ alone", "pq-auto", "pq-local|pq-daemon", "cpu_us", 1.05, 1.02),
    ("auto against local, p99", "hybrid-auto", "hybrid-local", "p99_us", 1.05, 1.05),
    ("client: auto against the better of all", "client-hybrid-auto",
     "client-hybrid-local-avx512|client-hybrid-daemon", "cpu_us", 1.05, 1.02),
    ("client: leases against plain X25519", "client-hybrid-leases", "client-x25519",
     "cpu_us", None, None),
]


def ratios(rows):
    """Each wanted ratio for each proxy: medians of the rounds' ratios."""
    out = []
    for what, over, under, figure, must, aim in WANTED:
        for kind, workers in dict.fromkeys((r.kind, r.workers) for r in rows):
            by_case = {r.case.name: r for r in rows
                       if (r.kind, r.workers) == (kind, workers) and r.rounds}
            unders = [by_case[name] for name in under.split("|") if name in by_case]
            if over not in by_case or len(unders) != len(under.split("|")):
                continue
            # The better one is told by the medians: the lesser of two noisy figures
            # of a round would be less than either.
            best = min(unders, key=lambda r: statistics.median(
                x[figure] for x in r.rounds))
            each = [a[figure] / b[figure]
                    for a, b in zip(by_case[over].rounds, best.rounds)]
            out.append({"ratio": what, "proxy": kind, "workers": workers,
                        "figure": figure, "value": round(statistics.median(each), 3),
                        "must": must, "aim": aim})
    return out


def print_table(rows, wanted, skipped):
    print(f"{'case':28} {'proxy':9} {'CPU us':>8} {'quartiles':>15} {'daemon':>7} "
          f"{'p50 us':>8} {'p99 us':>8} {'fill':>5} {'by daemon':>9} {'failed':>6}")
    for row in rows:
        print(f"{row['case']:28} {row['proxy'] + '-' + str(row['workers']):9} "
              f"{row['cpu_us']:8.1f} {row['cpu_q1_us']:7.1f} {row['cpu_q3_us']:7.1f} "
              f"{row['daemon_us']:7.1f} {row['p50_us']:8} {row['p99_us']:8} "
              f"{row['fill']:5.2f} {row['by_daemon'] * 100:8.1f}% {row['failed']:6}")
        if row["error"]:
            print(f"  {row['error']}")
    print()
    for ratio in wanted:
        bounds = "" if ratio["must"] is None else \
            f"  must {ratio['must']}, aim {ratio['aim']}"
        print(f"{ratio['ratio']:40} {ratio['proxy']}-{ratio['workers']:<3} "
              f"{ratio['value']:6.3f}{bounds}")
    for line in skipped:
        print(f"skipped: {line}")


def cpu_cell(row):
    if not row["daemon_us"] >= 0.5:
        return f"{row['cpu_us']:.0f}"
    return (f"{row['cpu_us']:.0f} ({row['daemon_us']:.0f}; {row['fill']:.1f}, "
            f"{row['by_daemon'] * 100:.0f} %)")


def time_cell(row):
    return f"{row['p50_us'] / 1000:.1f} / {row['p99_us'] / 1000:.1f}"


def print_markdown(rows, wanted, skipped):
    """Processor time; times that the client saw; ratios. A column a proxy."""
    proxies = list(dict.fromkeys((r["proxy"], r["workers"]) for r in rows))
    names = [f"{kind}, {n}" for kind, n in proxies]
    by_place = {(r["case"], r["proxy"], r["workers"]): r for r in rows}

    def table(head, cell):
        print(f"| {head} | {' | '.join(names)} |\n|{'---|' * (1 + len(names))}")
        for case in dict.fromkeys(row["case"] for row in rows):
            cells = [cell(by_place[case, *proxy]) if (case, *proxy) in by_place else ""
                     for proxy in proxies]
            print(f"| {case} | {' | '.join(cells)} |")
        print()

    table("us of processor (of it mlkemd; fill, its share)", cpu_cell)
    table("p50 / p99, ms", time_cell)
    print(f"| ratio | {' | '.join(names)} | must, aim |\n|{'---|' * (2 + len(names))}")
    for what in dict.fromkeys(ratio["ratio"] for ratio in wanted):
        these = {(r["proxy"], r["workers"]): r for r in wanted if r["ratio"] == what}
        cells = [f"{these[proxy]['value']:.2f}" if proxy in these else ""
                 for proxy in proxies]
        one = next(iter(these.values()))
        bounds = f"{one['must']:.2f}, {one['aim']:.2f}" if one["must"] else ""
        print(f"| {what} | {' | '.join(cells)} | {bounds} |")
    for line in skipped:
        print(f"\nskipped: {line}")
