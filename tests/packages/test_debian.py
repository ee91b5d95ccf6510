# SPDX-License-Identifier: Apache-2.0
"""The Debian packages: built as anybody builds them, twice with the same bytes, looked at
by lintian, then installed, upgraded, removed, purged and installed again under a real
systemd with nginx behind the provider; on Debian 12 and 13.

MLKEMD_VMRUN names the program that runs a script in a throw-away Debian (default
../shared/vm/vmrun beside the checkout). Minutes for each: suite packages-long.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VMRUN = pathlib.Path(os.environ.get("MLKEMD_VMRUN",
                                    ROOT.parent / "shared" / "vm" / "vmrun"))
CANNOT = 125  # vmrun's word for: there is no guest to be had
BUILD = ["build-essential", "dpkg-dev", "fakeroot", "lintian"]
RUN = {
    "bookworm": ["libevent-core-2.1-7", "libevent-extra-2.1-7"],
    "trixie": ["libevent-core-2.1-7t64", "libevent-extra-2.1-7t64"],
}
RUN_BOTH = ["libprotobuf-c1", "libseccomp2"]
CASES = ["control", "next", "install", "in-place", "access", "nginx", "upgrade",
         "reinstall", "remove-provider", "nginx-without", "provider-again", "remove",
         "install-over-config", "tenant", "purge", "install-again", "end"]
PACKAGES = ["libmlkemclient-dev", "libmlkemclient0", "mlkemd", "mlkemd-tools",
            "openssl-provider-mlkemd"]


def build_dependencies():
    """Of debian/control, as names: what a clean root needs."""
    text = (ROOT / "debian/control").read_text()
    block = re.search(r"^Build-Depends:\n((?: .*\n)+)", text, re.M)[1]
    names = [re.split(r"[ (:,]", line.strip())[0] for line in block.splitlines()]
    names = ["debhelper" if name.startswith(("debhelper-", "dh-sequence-")) else name
             for name in names]
    return sorted(set(names))


def guest(suite, packages, seconds, out, tree, script, *words):
    """{case: (passed, what it printed)} of a script in a guest."""
    run = subprocess.run(
        [VMRUN, "-b", "nspawn", "-s", suite, "-p", ",".join(packages), "-t", str(seconds),
         "-o", out, tree, script, *words], check=False, capture_output=True, text=True,
        errors="replace")
    if run.returncode == CANNOT and "case " not in run.stdout:
        pytest.skip("no guest: " + (run.stderr.strip().splitlines() or ["?"])[-1])
    results, text = {}, []
    for line in run.stdout.splitlines():
        found = re.match(r"case (\S+) (ok|FAIL)", line)
        if found:
            results[found[1]] = (found[2] == "ok", "\n".join(text + [line]))
            text = []
        else:
            text.append(line)
    assert results, run.stdout + run.stderr
    return results


def export(directory):
    """The source as it stands, without what was built in it."""
    listed = subprocess.run(["git", "ls-files", "-z"], check=True, cwd=ROOT,
                            capture_output=True).stdout
    subprocess.run(["tar", "--null", "-T", "-", "-cf", directory.parent / "tree.tar"],
                   check=True, cwd=ROOT, input=listed)
    directory.mkdir()
    subprocess.run(["tar", "-xf", directory.parent / "tree.tar", "-C", directory],
                   check=True)


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def built(request):
    """(suite, directory with debs/ and lintian, cases) of one release."""
    if os.getuid() != 0:
        pytest.skip("a guest needs root")
    if not VMRUN.exists():
        pytest.skip(f"no {VMRUN.name}: MLKEMD_VMRUN names it")
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("no git here to say which files are the source")
    with tempfile.TemporaryDirectory(prefix="mlkemd-debian-") as name:
        top = pathlib.Path(name)
        top.chmod(0o755)
        export(top / "tree")
        cases = guest(request.param, BUILD + build_dependencies(), 2400, top / "out",
                      top / "tree", HERE / "build.sh", "again")
        yield request.param, top / "out", cases


@pytest.fixture(scope="module")
def lived(built):
    """The cases of guest.sh with what was built."""
    suite, out, cases = built
    assert cases.get("build", (False,))[0], cases
    return guest(suite, RUN[suite] + RUN_BOTH, 600, out / "life", out / "debs",
                 HERE / "guest.sh")


def passed(cases, case):
    assert case in cases, f"the guest did not get to it; last: {list(cases)[-1:]}"
    assert cases[case][0], cases[case][1]


@pytest.mark.parametrize("case", ["build", "link", "reproducible"])
def test_build(built, case):
    passed(built[2], case)


def test_the_packages_are_all_there(built):
    names = sorted(path.name.split("_")[0] for path in (built[1] / "debs").glob("*.deb")
                   if "-dbgsym_" not in path.name)
    assert names == PACKAGES


def test_lintian_has_nothing_serious_to_say(built):
    said = (built[1] / "lintian").read_text()
    assert re.search(r"^[EWINO]: ", said, re.M), said
    assert re.findall(r"^[EW]: .*$", said, re.M) == []


def test_hardening(built):
    """Position-independent, relocations read-only from the start, no code on stacks."""
    with tempfile.TemporaryDirectory() as name:
        for package in ("mlkemd", "mlkemd-tools", "openssl-provider-mlkemd"):
            deb = next((built[1] / "debs").glob(f"{package}_*.deb"))
            subprocess.run(["dpkg-deb", "-x", deb, name], check=True)
        files = [path for path in pathlib.Path(name).rglob("*") if path.is_file() and
                 path.read_bytes()[:4] == b"\x7fELF"]
        assert len(files) == 5
        for path in files:
            said = subprocess.run(["readelf", "-hldW", path], check=True,
                                  capture_output=True, text=True).stdout
            assert re.search(r"Type: +DYN", said), path
            assert "BIND_NOW" in said or "NOW" in said, path
            assert "GNU_RELRO" in said, path
            assert not re.search(r"GNU_STACK .* RWE", said), path


@pytest.mark.parametrize("case", CASES[1:])
def test_life(lived, case):
    passed(lived, case)


def test_control_a_case_can_fail(lived):
    assert not lived["control"][0]
