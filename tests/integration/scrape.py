# SPDX-License-Identifier: Apache-2.0
"""HTTP to the daemon's metrics, and a strict reader of what Prometheus' text format is."""

import http.client
import re
import socket

SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(.*)\})? (\S+)$")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)')


class Connection(http.client.HTTPConnection):
    """address: (host, port), or the path of a Unix socket."""

    def __init__(self, address, timeout=20):
        super().__init__("localhost", timeout=timeout)
        self.address = address

    def connect(self):
        family = socket.AF_UNIX if isinstance(self.address, str) else socket.AF_INET
        self.sock = socket.socket(family, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.address)


def ask(address, path="/metrics", method="GET", headers=None, body=None, timeout=20):
    """(status, headers, body)"""
    connection = Connection(address, timeout)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


class Figures(dict):
    """{(name, ((label, value), ...)): number}, read strictly."""

    def __init__(self, text):
        super().__init__()
        self.types = {}
        family = None
        for line in text.splitlines():
            if line.startswith("# HELP "):
                family = line.split()[2]
                assert family not in self.types, f"twice: {family}"
            elif line.startswith("# TYPE "):
                assert line.split()[2] == family, line
                self.types[family] = line.split()[3]
            else:
                self.add(line, family)

    def add(self, line, family):
        found = SAMPLE.match(line)
        assert found, line
        name, _, labels, value = found.groups()
        base = re.sub("_(bucket|sum|count)$", "", name) \
            if self.types[family] == "histogram" else name
        assert base == family, f"{line} stands under {family}"
        pairs, at = [], 0
        while labels and at < len(labels):
            pair = LABEL.match(labels, at)
            assert pair, line
            pairs.append((pair[1], pair[2]))
            at = pair.end()
        key = (name, tuple(sorted(pairs)))
        assert key not in self, f"twice: {line}"
        self[key] = float(value)

    def of(self, name, **labels):
        """The sum of all series of a name that have these labels."""
        wanted = set(labels.items())
        found = [v for (n, ls), v in self.items() if n == name and wanted <= set(ls)]
        assert found, (name, labels)
        return sum(found)

    def check_histograms(self):
        """Cumulative, in order, +Inf last and equal to the count."""
        series = {}
        for (name, labels), value in self.items():
            if name.endswith("_bucket"):
                rest = tuple(p for p in labels if p[0] != "le")
                series.setdefault((name[:-7], rest), []).append(
                    (float(dict(labels)["le"].replace("+Inf", "inf")), value))
        assert len(series) > 20
        for (name, rest), buckets in series.items():
            bounds = [b for b, _ in buckets]
            counts = [c for _, c in buckets]
            assert bounds == sorted(bounds) and bounds[-1] == float("inf"), name
            assert counts == sorted(counts), (name, rest)
            assert counts[-1] == self[name + "_count", rest], (name, rest)
            assert self[name + "_sum", rest] >= 0


def figures(address):
    status, headers, body = ask(address)
    assert status == 200
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    return Figures(body.decode())
