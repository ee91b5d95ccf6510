# SPDX-License-Identifier: Apache-2.0
"""What the Containerfile promises, without an engine: see container.sh.

Not root, a read-only root, no network, 64 KiB of locked memory: it says that its memory is
not locked and goes on; a program that mounts the directory uses it.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ["MLKEMD_BUILD"])
UID = 997
SECONDS = 60

pytestmark = pytest.mark.skipif(os.getuid() != 0 or not shutil.which("setpriv"),
                                reason="namespaces and another user need root")


class Container:
    """The daemon in its namespaces; a context manager."""

    def __init__(self, *options):
        self.options = options
        self.process = None
        self.text = ""

    def __enter__(self):
        # Reachable for uid 997, which directories of pytest are not.
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="mlkemd-pkg-", dir="/run"))
        self.directory.chmod(0o755)
        self.run = self.directory / "run"
        self.run.mkdir()
        os.chown(self.run, UID, UID)
        self.build = self.directory / "build"
        for name in ("daemon/mlkemd", "tools/mlkemctl"):
            (self.build / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(BUILD / name, self.build / name)
        self.log = (self.directory / "log").open("w+")
        self.process = subprocess.Popen(
            ["unshare", "-m", "-p", "-n", "--fork", "--kill-child",
             HERE / "container.sh", self.build, self.run, *self.options],
            stdout=self.log, stderr=self.log, cwd="/")
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.directory)

    def said(self):
        return (self.directory / "log").read_text()

    def wait_for(self, word):
        end = time.monotonic() + SECONDS
        while not re.search(word, self.said()):
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < end, self.said()
            time.sleep(0.02)

    def first(self):
        """The process that is number 1 inside."""
        pid = self.process.pid
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
        return int(children.split()[0])

    def ctl(self, *words):
        return subprocess.run(
            ["setpriv", "--reuid", str(UID), "--regid", str(UID), "--clear-groups",
             self.build / "tools/mlkemctl", *words, "--socket", self.run / "mlkemd.sock"],
            check=False, capture_output=True, text=True, timeout=SECONDS)


def test_it_degrades_and_serves():
    with Container() as container:
        container.wait_for("ready: ")
        assert re.search(r"<4>secret-memory: .*(Limit|RLIMIT_)MEMLOCK",
                         container.said()), container.said()
        status = pathlib.Path(f"/proc/{container.first()}/status").read_text()
        assert re.search(rf"^Uid:\t{UID}\t{UID}\t", status, re.M)
        assert re.search(r"^CapBnd:\t0+$", status, re.M)
        assert re.search(r"^Seccomp:\t2$", status, re.M)
        assert re.search(r"^NSpid:\t\d+\t1$", status, re.M)
        served = container.ctl("demo", "--exchanges", "100", "--control-socket",
                               str(container.run / "control.sock"))
        assert served.returncode == 0, served.stdout + served.stderr
        os.kill(container.first(), signal.SIGTERM)
        assert container.process.wait(SECONDS) == 0, container.said()
        assert "stopped" in container.said()
        assert sorted(path.name for path in container.run.iterdir()) == []


def test_control_who_requires_locked_memory_gets_no_start():
    with Container("--set", "daemon.secret-memory=require") as container:
        assert container.process.wait(SECONDS) == 1, container.said()
        assert "start-failed: " in container.said()


def test_the_file_names_what_is_there():
    text = (ROOT / "Containerfile").read_text()
    assert re.search(rf"^USER {UID}:{UID}$", text, re.M)
    options = (ROOT / "meson_options.txt").read_text()
    for option in re.findall(r"-D([a-z-]+)=", text):
        assert f"'{option}'" in options or option.startswith("b_"), option
    # What the build stage installs is what quickstart.sh installs.
    listed = subprocess.run(
        ["bash", "-c", ". tests/lib/packages.sh; echo ${BUILD_PACKAGES[*]}"], cwd=ROOT,
        check=True, capture_output=True, text=True).stdout.split()
    build_stage = text.split("AS build")[1].split("COPY")[0]
    assert {"gcc", "meson"} <= set(listed)
    assert [name for name in listed if not re.search(rf"\s{name}\s", build_stage)] == []
