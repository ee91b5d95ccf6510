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


def print_markdown(rows, wanted, skipped):
    """A line a case, a group of columns a proxy; the ratios below."""
    proxies = list(dict.fromkeys((r["proxy"], r["workers"]) for r in rows))
    head = ["case"] + [f"{kind}, {n}: CPU (of it mlkemd) | p50 / p99 ms | fill, share"
                       for kind, n in proxies]
    print("| " + " | ".join(head) + " |\n|" + "---|" * (1 + 3 * len(proxies)))
    for name in dict.fromkeys(row["case"] for row in rows):
        cells = [name]
        for proxy in proxies:
            row = next((r for r in rows if r["case"] == name and
                        (r["proxy"], r["workers"]) == proxy), None)
            if row is None:
                cells += ["", "", ""]
                continue
            daemon = f" ({row['daemon_us']:.0f})" if row["daemon_us"] >= 0.5 else ""
            cells += [f"{row['cpu_us']:.0f}{daemon}",
                      f"{row['p50_us'] / 1000:.1f} / {row['p99_us'] / 1000:.1f}",
                      f"{row['fill']:.1f}, {row['by_daemon'] * 100:.0f} %"
                      if daemon else ""]
        print("| " + " | ".join(cells) + " |")
    print("\n| ratio | " + " | ".join(f"{kind}, {n}" for kind, n in proxies) +
          " | must, aim |\n|" + "---|" * (2 + len(proxies)))
    for what in dict.fromkeys(ratio["ratio"] for ratio in wanted):
        these = [ratio for ratio in wanted if ratio["ratio"] == what]
        cells = []
        for proxy in proxies:
            values = [f"{r['value']:.2f}" for r in these
                      if (r["proxy"], r["workers"]) == proxy]
            cells.append(values[0] if values else "")
        bounds = f"{these[0]['must']:.2f}, {these[0]['aim']:.2f}" if these[0]["must"] else ""
        print("| " + " | ".join([what] + cells + [bounds]) + " |")
    for line in skipped:
        print(f"\nskipped: {line}")
