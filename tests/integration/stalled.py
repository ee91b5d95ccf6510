# SPDX-License-Identifier: Apache-2.0
"""One thread of a process stopped while its others go on, as a hang would."""

import ctypes
import errno
import os
import pathlib

import pytest

PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17
WALL = 0x40000000  # __WALL: threads too
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def threads_of(pid):
    """In the order in which they were started, without the first."""
    tasks = sorted(int(t.name) for t in pathlib.Path(f"/proc/{pid}/task").iterdir())
    return [task for task in tasks if task != pid]


class Stalled:
    """with Stalled(tid): ... Belongs to the thread that makes it, as ptrace wants it."""

    def __init__(self, tid):
        self.tid = tid
        if libc.ptrace(PTRACE_SEIZE, tid, None, None):
            reason = ctypes.get_errno()
            if reason == errno.EPERM:
                pytest.skip("may not trace a process here")
            raise OSError(reason, os.strerror(reason))
        assert libc.ptrace(PTRACE_INTERRUPT, tid, None, None) == 0
        os.waitpid(tid, WALL)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.end()

    def end(self):
        """It goes on, unless its process is gone."""
        if libc.ptrace(PTRACE_DETACH, self.tid, None, None):
            self.reap()

    def reap(self):
        """Who traces a thread has to take note of its end; the process lasts till then."""
        try:
            return os.waitpid(self.tid, WALL | os.WNOHANG)[0] == self.tid
        except ChildProcessError:
            return True
