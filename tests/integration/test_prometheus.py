# SPDX-License-Identifier: Apache-2.0
"""Debian's Prometheus and its promtool: they take the figures, the alerts, the dashboard.

Both are looked for in PATH, else unpacked (never installed: no service starts) by
tests/lib/proxies.sh. Skipped with the reason where they can't be had.
"""

import json
import os
import pathlib
import re
import socket
import subprocess
import threading
import time
import urllib.parse

import pytest

from daemon import SLOW, Daemon, wait_for
from peer import ALGORITHMS, pb
from scrape import ask
from test_metrics import exchange, free_port

ROOT = pathlib.Path(os.environ["MLKEMD_SOURCE"])
FILES = ROOT / "docs" / "prometheus"
HERE = pathlib.Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def programs():
    """{"prometheus": path, "promtool": path}"""
    run = subprocess.run([ROOT / "tests/lib/proxies.sh", "host", "prometheus", "promtool"],
                         capture_output=True, text=True)
    if run.returncode:
        pytest.skip("no Prometheus: " + (run.stderr.strip().splitlines() or ["?"])[-1])
    return dict(line.split("\t") for line in run.stdout.splitlines())


def promtool(programs, *args, input_=None):
    run = subprocess.run([programs["promtool"], *map(str, args)], input=input_,
                         capture_output=True)
    return run.returncode, (run.stdout + run.stderr).decode(errors="replace")


@pytest.fixture(scope="module")
def measured():
    port = free_port()
    with Daemon({"metrics.listen": f"127.0.0.1:{port}"}) as daemon:
        daemon.http = ("127.0.0.1", port)
        yield daemon


def test_promtool_finds_nothing_to_say(programs, measured):
    status, text = promtool(programs, "check", "metrics",
                            input_=ask(measured.http)[2])
    assert (status, text) == (0, "")
    # The control: a counter without _total, a histogram in milliseconds.
    status, text = promtool(programs, "check", "metrics", input_=(
        b"# HELP mlkemd_requests x\n# TYPE mlkemd_requests counter\nmlkemd_requests 1\n"
        b"# HELP mlkemd_wait_milliseconds x\n# TYPE mlkemd_wait_milliseconds gauge\n"
        b"mlkemd_wait_milliseconds 1\n"))
    assert status != 0 and "_total" in text


def test_alerts_fire_when_they_should(programs):
    status, text = promtool(programs, "check", "rules", FILES / "alerts.yml")
    assert status == 0, text
    status, text = promtool(programs, "test", "rules", HERE / "alerts_test.yml")
    assert status == 0, text
    # Each alert has a test.
    names = re.findall(r"- alert: (\w+)", (FILES / "alerts.yml").read_text())
    tested = re.findall(r"alertname: (\w+)", (HERE / "alerts_test.yml").read_text())
    assert sorted(names) == sorted(tested) and len(names) > 10


def test_control_a_rule_that_does_not_fire_is_noticed(programs, tmp_path):
    (tmp_path / "alerts.yml").write_text(
        (FILES / "alerts.yml").read_text().replace("> 0.01", "> 0.99"))
    (tmp_path / "test.yml").write_text((HERE / "alerts_test.yml").read_text().replace(
        "../../docs/prometheus/alerts.yml", str(tmp_path / "alerts.yml")))
    status, text = promtool(programs, "test", "rules", tmp_path / "test.yml")
    assert status != 0 and "MlkemdPoolMisses" in text


class Prometheus:
    """One that scrapes the daemon every second."""

    def __init__(self, programs, directory, target):
        self.address = ("127.0.0.1", free_port())
        config = (FILES / "prometheus.yml").read_text()
        assert "127.0.0.1:9768" in config
        config = config.replace("127.0.0.1:9768", target).replace(
            "scrape_interval: 15s", "scrape_interval: 1s")
        config = re.sub(r"/\S*/alerts.yml", str(FILES / "alerts.yml"), config)
        (directory / "prometheus.yml").write_text(config)
        self.log = open(directory / "log", "wb")
        self.process = subprocess.Popen(
            [programs["prometheus"], f"--config.file={directory}/prometheus.yml",
             f"--storage.tsdb.path={directory}/data",
             f"--web.listen-address=127.0.0.1:{self.address[1]}"],
            stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL,
            env=dict(os.environ, GOMAXPROCS="1"))

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.terminate()
        self.process.wait(60)
        self.log.close()

    def api(self, path, **parameters):
        status, _, body = ask(self.address,
                              f"/api/v1/{path}?" + urllib.parse.urlencode(parameters))
        answer = json.loads(body)
        assert status == 200 and answer["status"] == "success", answer
        return answer["data"]

    def query(self, expression):
        return self.api("query", query=expression)["result"]

    def is_up(self):
        try:
            return [r["value"][1] for r in self.query('up{job="mlkemd"}')] == ["1"]
        except (OSError, AssertionError, ValueError):
            return False


@pytest.fixture(scope="module")
def scraped(programs, measured, tmp_path_factory):
    """A Prometheus that has scraped the daemon for some seconds of mixed load."""
    directory = tmp_path_factory.mktemp("prometheus")
    target = f"127.0.0.1:{measured.http[1]}"
    stop = threading.Event()

    def load(algorithm):
        with measured.peer() as peer:
            while not stop.is_set():
                exchange(peer, algorithm, 4)
                time.sleep(0.02)
    with Prometheus(programs, directory, target) as prometheus:
        wait_for(prometheus.is_up, 60 * SLOW, "a scrape")
        threads = [threading.Thread(target=load, args=[a]) for a in ALGORITHMS]
        for thread in threads:
            thread.start()
        try:
            wait_for(lambda: prometheus.query("count_over_time(mlkemd_connections[1m]) > 8"),
                     60 * SLOW, "eight scrapes under load")
            yield prometheus
        finally:
            stop.set()
            for thread in threads:
                thread.join()


def dashboard_queries():
    board = json.loads((FILES / "mlkemd-dashboard.json").read_text())
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]


def filled_in(expression):
    return expression.replace("$__rate_interval", "10s").replace("$instance", ".*")


def test_every_query_of_the_dashboard_returns_data(scraped):
    queries = list(dashboard_queries())
    assert len(queries) > 30
    empty = [(title, expression) for title, expression in queries
             if not scraped.query(filled_in(expression))]
    assert not empty
    numbers = [r["value"][1] for _, expression in queries
               for r in scraped.query(filled_in(expression))]
    assert len(numbers) > 50
    # Ratios and quantiles of what did happen are numbers.
    for expression in ("sum(rate(mlkemd_items_total[10s]))",
                       "sum(rate(mlkemd_request_duration_seconds_count[10s]))"):
        assert float(scraped.query(expression)[0]["value"][1]) > 0
    # The control: a name that does not exist returns none.
    assert not scraped.query("mlkemd_no_such_figure")


def test_every_figure_of_the_dashboard_and_the_alerts_exists(scraped):
    names = set(scraped.api("label/__name__/values"))
    text = (FILES / "mlkemd-dashboard.json").read_text() + (
        FILES / "alerts.yml").read_text()
    used = set(re.findall(r"\b((?:mlkemd|process)_[a-z_]*[a-z])(?=[{\[ )])", text))
    assert len(used) > 20
    assert not {name for name in used if not any(
        other in names for other in (name, name + "_count"))}


def test_the_alerts_are_loaded_and_quiet(scraped):
    groups = scraped.api("rules")["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len(rules) > 10
    assert all(rule["health"] in ("ok", "unknown") for rule in rules), rules
    firing = {rule["name"] for rule in rules if rule["state"] == "firing"}
    assert not firing - {"MlkemdSecretMemoryDegraded"}, firing


def test_what_is_scraped_stays_small(scraped):
    count = scraped.query('scrape_samples_scraped{job="mlkemd"}')[0]["value"][1]
    assert 500 < int(count) <= 1000
