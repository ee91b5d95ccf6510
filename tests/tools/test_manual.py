# SPDX-License-Identifier: Apache-2.0
"""Programs, library and provider have what their pages tell, and tell what they have: both
ways, and with the controls that a word too many on either side is noticed. The pages as
HTML (`meson compile docs`) lead nowhere else than to each other.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from test_documents import configuration_keys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAN = ROOT / "docs/man"
# program, where its options are, its page
PROGRAMS = {
    "mlkemd": (["daemon/main.c"], "mlkemd.8", "MLKEMD_DAEMON"),
    "mlkemctl": (["tools/main.c"], "mlkemctl.1", "MLKEMD_CTL"),
    "mlkem-bench": (["tools/mlkem-bench/main.c"], "mlkem-bench.1", "MLKEMD_BENCH"),
    "mlkem-ct": (["tools/mlkem-ct/main.c"], "mlkem-ct.1", "MLKEMD_CT"),
}


def page(name):
    return (MAN / name).read_text()


def options_of(files):
    """The names that getopt_long() is given, but for those that are there to be refused."""
    text = "".join((ROOT / file).read_text() for file in files)
    return set(re.findall(r'\{"([a-z0-9-]+)", *(?:no|required|optional)_argument, NULL, '
                          r"(?!OPT_SECRET\})", text))


def options_in(text):
    """Every long option that a page mentions."""
    return set(re.findall(r"\bFl -([a-z0-9][a-z0-9-]*)", text)) | listed_in(text)


def listed_in(text):
    """Options that have an entry of their own."""
    found = set()
    for line in re.findall(r"^\.It Fl .*$", text, re.M):
        found |= set(re.findall(r"(?:Fl |, )-([a-z0-9][a-z0-9-]*)", line))
    return found


def differences(have, told):
    return sorted(have - told), sorted(told - have)


@pytest.mark.parametrize("program", PROGRAMS)
def test_options_are_those_of_the_page(program):
    files, name, _ = PROGRAMS[program]
    have, text = options_of(files), page(name)
    assert len(have) >= 8
    # Those of mlkemctl stand with the subcommands that take them.
    told = options_in(text) if program == "mlkemctl" else listed_in(text)
    assert differences(have, told) == ([], [])
    assert options_in(text) <= have


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_names_options_that_there_are(program):
    files, _, variable = PROGRAMS[program]
    path = os.environ.get(variable)
    if path is None:
        pytest.skip(f"{variable} is not set")
    said = subprocess.run([path, "--help"], check=True, capture_output=True, text=True)
    told = set(re.findall(r"(?<![\w-])--([a-z][a-z0-9-]*)", said.stdout))
    assert told and told <= options_of(files)
    if program != "mlkemctl":  # its subcommands have help of their own
        assert told == options_of(files)


def test_control_an_option_too_many_is_noticed():
    files, name, _ = PROGRAMS["mlkem-bench"]
    text = page(name)
    assert differences(options_of(files), listed_in(text + ".It Fl -stray\n"))[1] == [
        "stray"]
    assert differences(options_of(files) | {"stray"}, listed_in(text))[0] == ["stray"]
    assert "stray" in options_in(text + ".Op Fl -stray Ar n\n")


def keys_in_page():
    """{(section, key)} of mlkemd.conf(5)."""
    found, section = set(), None
    for line in page("mlkemd.conf.5").splitlines():
        heading = re.match(r"\.Ss Section ([a-z]+)$", line)
        if heading:
            section = heading[1]
        elif re.match(r"\.S[sh] ", line):
            section = None
        elif line.startswith(".It Sy ") and section:
            names = line[len(".It Sy "):].split(" Pq ")[0]
            found |= {(section, key) for key in re.findall(r"[a-z][a-z0-9-]+", names)}
    return found


def test_configuration_keys_are_those_of_the_page():
    have = {(section, key) for section, key, _ in configuration_keys()}
    assert differences(have, keys_in_page()) == ([], [])


def test_configuration_keys_are_those_of_operations():
    have = {(section, key) for section, key, _ in configuration_keys()}
    sections = "|".join({section for section, _ in have})
    table = re.findall(rf"^\| `({sections})\.([a-z0-9-]+)`",
                       (ROOT / "docs/operations.md").read_text(), re.M)
    assert differences(have, set(table)) == ([], [])


def test_defaults_are_those_of_operations():
    text = (ROOT / "docs/operations.md").read_text()
    rows = dict(re.findall(r"^\| `([a-z0-9.-]+)`[^|]*\| ([^|]*?) \|", text, re.M))
    for section, key, value in configuration_keys():
        told = rows[f"{section}.{key}"]
        if section != "access":
            assert told == (f"`{value}`" if value else "empty"), (section, key)



def table_of(section, text):
    """The names in backquotes of the first column of a section's table."""
    part = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", text, re.M | re.S)[1]
    rows = re.findall(r"^\| (`[^|]*) \|", part, re.M)
    return {name for row in rows for name in re.findall(r"`([a-z0-9_-]+)`", row)}


def events():
    """Names of all log events, those that go by conn_drop() included."""
    found = set()
    for path in (ROOT / "daemon").glob("*.c"):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
        found |= set(re.findall(r"\blog_event(?:_limited)?\(\s*[^;\"]*?\"([a-z-]+)\",",
                                text))
        found |= set(re.findall(r"\bconn_drop\([^;\"]*\"([a-z-]+)\",", text))
    return found - {"sandbox-try"}  # of a planted fault only


def counters():
    return set(re.findall(r"^ X\(\w+, \"(\w+)\"",
                          (ROOT / "daemon/metrics.h").read_text(), re.M))


def test_events_and_counters_are_those_of_operations():
    text = (ROOT / "docs/operations.md").read_text()
    assert len(events()) > 30 and len(counters()) > 30
    assert differences(events(), table_of("The log", text)) == ([], [])
    assert differences(counters(), table_of("Counters", text)) == ([], [])
    # Controls: a row less is noticed, and a row more.
    less = re.sub(r"^\| `user-full`.*\n|`x25519_lanes_idle_total`", "", text, flags=re.M)
    assert differences(events(), table_of("The log", less)) == (["user-full"], [])
    assert differences(counters(), table_of("Counters", less)) == (
        ["x25519_lanes_idle_total"], [])
    more = text.replace("| `user-full` |", "| `user-full`, `user-fuller` |")
    assert differences(events(), table_of("The log", more)) == ([], ["user-fuller"])


def test_functions_are_those_of_the_page():
    header = re.sub(r"/\*.*?\*/", "", (ROOT / "client-lib/mlkemclient.h").read_text(),
                    flags=re.S)
    have = set(re.findall(r"\b(mlkemclient_\w+)\(", header))
    text = page("libmlkemclient.3")
    told = set(re.findall(r"^\.Fo (mlkemclient_\w+)|^\.Fn \"?(?:\w[\w *]*)??\"? ?"
                          r"(mlkemclient_\w+)", text, re.M))
    told = {one or other for one, other in told}
    assert differences(have, told) == ([], [])
    # Structs, enumerators and macros that the page names are in the header.
    for name in re.findall(r"\b(MLKEMCLIENT_[A-Z0-9_]*[A-Z0-9])\b", text):
        assert name in header, name


def test_settings_of_the_provider_are_those_of_its_page():
    have = set(re.findall(r'^ +\{"([a-z-]+)", read_',
                          (ROOT / "provider/config.c").read_text(), re.M))
    settings = page("mlkemd-provider.7").split(".Ss Settings")[1].split(".Ss ")[0]
    told = set(re.findall(r"^\.It Sy ([a-z-]+)", settings, re.M))
    assert len(have) >= 7
    assert differences(have, told) == ([], [])
    proxies = (ROOT / "docs/proxies.md").read_text().split("## Keys of the provider")[1]
    table = set(re.findall(r"^\| `([a-z-]+)` \|", proxies.split("\n## ")[0], re.M))
    assert differences(have, table) == ([], [])
    assert differences(have | {"stray"}, told) == (["stray"], [])


def test_subcommands_are_those_of_the_page():
    said = subprocess.run([os.environ["MLKEMD_CTL"], "--help"], check=True,
                          capture_output=True, text=True).stdout
    have = set(re.findall(r"^  ([a-z][a-z-]+)  ", said, re.M))
    told = set(re.findall(r"^\.It (?:Cm|Ic|Sy) ([a-z][a-z-]+)", page("mlkemctl.1"), re.M))
    assert len(have) >= 12
    assert have <= told, have - told


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    if not shutil.which("mandoc"):
        pytest.skip("mandoc is not installed")
    directory = tmp_path_factory.mktemp("html")
    subprocess.run([sys.executable, ROOT / "docs/man_html.py", "mandoc", directory,
                    *sorted(MAN.iterdir())], check=True)
    return directory


def dead_links(directory):
    dead = []
    for file in directory.glob("*.html"):
        text = file.read_text()
        anchors = set(re.findall(r' id="([^"]*)"', text))
        for link in re.findall(r'href="([^"]*)"', text):
            target, _, anchor = link.partition("#")
            if target and not (directory / target).exists():
                dead.append((file.name, link))
            if not target and anchor not in anchors:
                dead.append((file.name, link))
    return dead


def test_pages_as_html(html):
    names = {path.name for path in html.iterdir()}
    assert names == {path.name + ".html" for path in MAN.iterdir()} | {
        "index.html", "style.css"}
    index = (html / "index.html").read_text()
    for path in MAN.iterdir():
        assert f'href="{path.name}.html"' in index
        assert "DESCRIPTION" in (html / (path.name + ".html")).read_text()
    assert dead_links(html) == []
    # Every page is asked for when the target is built.
    listed = (ROOT / "docs/meson.build").read_text()
    for path in MAN.iterdir():
        assert f"'man/{path.name}'" in listed


def test_control_a_dead_link_is_noticed(html):
    (html / "stray.html").write_text('<a href="nowhere.html">x</a>')
    try:
        assert dead_links(html) == [("stray.html", "nowhere.html")]
    finally:
        (html / "stray.html").unlink()
