# SPDX-License-Identifier: Apache-2.0
"""The documents say what the programs do: keys, options, errors, manual pages."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

from ctl import ctl

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAN = ROOT / "docs" / "man"


def man(name):
    """A manual page without its markup, as far as words matter."""
    text = (MAN / name).read_text()
    return re.sub(r"^\.\w+ ", "", text, flags=re.M).replace("\\-", "-").replace(
        "\\&", "")


def configuration_keys():
    """(section, key, default) from the daemon itself."""
    with tempfile.NamedTemporaryFile() as empty:
        printed = subprocess.run([os.environ["MLKEMD_DAEMON"], "--config", empty.name,
                                  "--print-config"], check=True, capture_output=True,
                                 text=True).stdout
    section, keys = None, []
    for line in printed.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif "#" in line:
            key, value = line.split("#")[0].split("=", 1)
            keys.append((section, key.strip(), value.strip()))
    return keys


def test_every_configuration_key_is_documented():
    keys = configuration_keys()
    assert len(keys) > 20
    page = (MAN / "mlkemd.conf.5").read_text()
    example = (ROOT / "systemd" / "mlkemd.conf.example").read_text()
    for section, key, _ in keys:
        assert f"[{section}]" in example
        assert re.search(rf"^\.It Sy {re.escape(key)}\b", page, re.M), key
        assert re.search(rf"^#?{re.escape(key)} =", example, re.M), key


def test_the_example_is_the_default():
    example = ROOT / "systemd" / "mlkemd.conf.example"
    daemon = os.environ["MLKEMD_DAEMON"]
    subprocess.run([daemon, "--config", str(example), "--check"], check=True)
    printed = subprocess.run([daemon, "--config", str(example), "--print-config"],
                             check=True, capture_output=True, text=True).stdout
    for section, key, value in configuration_keys():
        if not section == "access":
            assert re.search(rf"^{re.escape(key)} = {re.escape(value)} *#", printed,
                             re.M), key


def test_control_an_unknown_key_is_noticed():
    with pytest.raises(AssertionError):
        page = (MAN / "mlkemd.conf.5").read_text()
        assert re.search(r"^\.It Sy no-such-key\b", page, re.M)


def test_every_option_of_mlkemctl_is_documented():
    page = man("mlkemctl.1")
    for command in re.findall(r"^  ([a-z]+)  ", ctl("--help").out, re.M):
        assert command in page
        for option in re.findall(r"--([a-z-]+)", ctl("help", command).out):
            if option != "check":  # mlkemd's own
                assert f"-{option}" in page, (command, option)


def test_every_client_function_and_error_is_documented():
    header = (ROOT / "client-lib" / "mlkemclient.h").read_text()
    page = man("libmlkemclient.3")
    functions = set(re.findall(r"\b(mlkemclient_\w+)\(", header))
    functions -= {"mlkemclient_"}
    assert len(functions) > 20
    for name in functions:
        assert name in page, name
    for name, number in re.findall(r"(MLKEMCLIENT_E_\w+)\s*=\s*(-\d+)", header):
        assert f"{name} No ({number})" in page, name


def test_manual_pages_are_clean():
    if not shutil.which("mandoc"):
        pytest.skip("mandoc is not installed")
    pages = sorted(MAN.iterdir())
    assert len(pages) >= 5
    said = subprocess.run(["mandoc", "-Tlint", *map(str, pages)], check=False,
                          capture_output=True, text=True)
    lines = [line for line in (said.stdout + said.stderr).splitlines()
             # Whether other pages are installed here is no fault of these.
             if "referenced manual not found" not in line and "outdated" not in line]
    assert lines == []


def test_quickstart_and_its_dry_run(tmp_path):
    script = ROOT / "quickstart.sh"
    said = subprocess.run([str(script), "--dry-run"], check=True, cwd=tmp_path,
                          capture_output=True, text=True).stdout
    assert "packages" in said and "build" in said and len(said.splitlines()) <= 6
    bad = subprocess.run([str(script), "--frob"], check=False, capture_output=True,
                         text=True)
    assert bad.returncode == 2 and "--keep" in bad.stderr
    assert list(tmp_path.iterdir()) == []


def test_quickstart_is_clean_shell():
    if not shutil.which("shellcheck"):
        pytest.skip("shellcheck is not installed")
    subprocess.run(["shellcheck", "-x", "quickstart.sh"], check=True, cwd=ROOT)


def test_local_links_of_the_documents_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / link).exists(), (page.name, link)
