# SPDX-License-Identifier: Apache-2.0
"""The documents say what the programs do: keys, options, errors, manual pages."""

import os
import pathlib
import re
import shutil
import signal
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


@pytest.fixture
def quickstart(tmp_path):
    """The script in a tree of its own, where what builds is a word that only notes its
    call: the programs are those of this build."""
    tree, words = tmp_path / "tree", tmp_path / "words"
    (tree / "tests/lib").mkdir(parents=True)
    words.mkdir()
    for name in ("quickstart.sh", "tests/lib/packages.sh"):
        shutil.copy(ROOT / name, tree / name)
    for name, path in (("daemon/mlkemd", os.environ["MLKEMD_DAEMON"]),
                       ("tools/mlkemctl", os.environ["MLKEMD_CTL"])):
        (tree / "build-quickstart" / name).parent.mkdir(parents=True)
        (tree / "build-quickstart" / name).symlink_to(path)
    for name in ("meson", "ninja", "protoc-c"):
        (words / name).write_text('#!/bin/sh\necho "$0 $*"\nexit ${FAIL:-0}\n')
        (words / name).chmod(0o755)

    def run(*args, **more):
        env = dict(os.environ, PATH=f"{words}:{os.environ['PATH']}", **more)
        return subprocess.run([tree / "quickstart.sh", "--no-install", *args], env=env,
                              check=False, capture_output=True, text=True, timeout=120)
    return run


def test_quickstart_says_that_it_builds(quickstart):
    """Before it does: also where the build then fails."""
    said = quickstart(FAIL="1")
    assert said.returncode == 1 and "build failed" in said.stderr
    assert re.search(r"^building +mlkemd and mlkemctl.*quickstart-build\.log", said.stdout,
                     re.M)


def test_quickstart_says_what_keygen_waits_for(quickstart):
    said = quickstart("--keep")
    assert said.returncode == 0, said.stderr
    pid = int(re.search(r"^running +mlkemd, pid (\d+)", said.stdout, re.M)[1])
    folder = re.search(rf"^to stop +kill {pid} && rm -r (\S+)$", said.stdout, re.M)[1]
    try:
        after = said.stdout.partition("\nnext ")[2]
        assert "keygen --socket" in after.splitlines()[0]
        assert "waits for the ciphertext" in after and "encaps --socket" in after
    finally:
        os.kill(pid, signal.SIGTERM)
        # It takes its sockets away itself meanwhile.
        while pathlib.Path(folder).exists():
            shutil.rmtree(folder, ignore_errors=True)


def lacks(page):
    """What a page that installs by hand leaves out."""
    return [word for word in ("systemd-sysusers", "systemd-tmpfiles --create",
                              "systemctl daemon-reload", "dpkg-buildpackage -b -us -uc")
            if word not in page]


@pytest.mark.parametrize("name", ["README.md", "docs/operations.md", "docs/proxies.md"])
def test_the_way_to_a_service_is_whole(name):
    page = (ROOT / name).read_text()
    assert "meson install" in page and lacks(page) == []
    assert "dpkg-buildpackage -b -us -uc" in (ROOT / "CONTRIBUTING.md").read_text()


def test_control_a_way_that_is_not_whole():
    page = (ROOT / "README.md").read_text()
    assert lacks(page.replace("systemd-sysusers", "")) == ["systemd-sysusers"]


def test_quickstart_is_clean_shell():
    if not shutil.which("shellcheck"):
        pytest.skip("shellcheck is not installed")
    subprocess.run(["shellcheck", "-x", "quickstart.sh"], check=True, cwd=ROOT)


def test_local_links_of_the_documents_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / link).exists(), (page.name, link)
