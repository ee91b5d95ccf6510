# SPDX-License-Identifier: Apache-2.0
"""mlkemd as a service: under a real systemd, in a throw-away Debian.

MLKEMD_VMRUN names the program that runs a script in one (default ../shared/vm/vmrun beside
the checkout). The build is installed as `meson install` does it, and guest.sh looks at it
there. Skipped where no guest can be had, with the reason.
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
PACKAGES = "libevent-core-2.1-7,libevent-extra-2.1-7,libprotobuf-c1,libseccomp2"
CANNOT = 125  # vmrun's word for: there is no guest to be had
CASES = ["install", "start", "exchange-as-allowed", "exchange-as-root", "forbidden-user",
         "limits", "security", "security-tenant", "scrape", "kill", "freeze", "reload",
         "reload-refused", "restarts", "restarts-control", "tenant", "on-demand",
         "bad-configuration", "address-family", "stop", "end"]


def stage(directory):
    """What `meson install` with a DESTDIR gives, and what guest.sh brings along."""
    environment = dict(os.environ, DESTDIR=str(directory))
    subprocess.run(["meson", "install", "-C", os.environ["MLKEMD_BUILD"], "--no-rebuild",
                    "--quiet"], check=True, env=environment, capture_output=True)
    shutil.copy(ROOT / "tests/proto/golden/request-hello.bin", directory)


@pytest.fixture(scope="module")
def guest():
    """{case: (passed, what it printed)} of one run."""
    if os.getuid() != 0:
        pytest.skip("a guest needs root")
    if os.environ.get("MLKEMD_SANITIZER"):
        pytest.skip("a build with a sanitizer is not installed")
    if not VMRUN.exists():
        pytest.skip(f"no {VMRUN.name}: MLKEMD_VMRUN names it")
    with tempfile.TemporaryDirectory(prefix="mlkemd-stage-") as name:
        directory = pathlib.Path(name)
        directory.chmod(0o755)
        stage(directory)
        if not (directory / "usr/local/sbin/mlkemd").exists():
            pytest.skip("a build for another prefix than /usr/local")
        out = directory / "out"
        run = subprocess.run(
            [VMRUN, "-b", "nspawn", "-p", PACKAGES, "-t", "400", "-o", out, directory,
             HERE / "guest.sh"], capture_output=True, text=True, errors="replace")
    if run.returncode == CANNOT and "case " not in run.stdout:
        pytest.skip("no guest: " + (run.stderr.strip().splitlines() or ["?"])[-1])
    print(run.stdout)
    results, text = {}, []
    for line in run.stdout.splitlines():
        found = re.match(r"case (\S+) (ok|FAIL)(.*)", line)
        if found:
            results[found[1]] = (found[2] == "ok", "\n".join(text + [line]))
            text = []
        else:
            text.append(line)
    assert results, run.stdout + run.stderr
    return results


@pytest.mark.parametrize("case", CASES)
def test_service(guest, case):
    assert case in guest, f"the guest did not get to it; last: {list(guest)[-1:]}"
    passed, text = guest[case]
    assert passed, text
