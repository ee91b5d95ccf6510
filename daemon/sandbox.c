/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kem/fault.h"
#include "log.h"

/*
 * By name, since not every architecture has each of them; what one lacks is passed over.
 * Names of nothing but bytes, time, memory and threads need no more than a look.
 */
static const char *const allowed[] = {
    /* bytes to and from descriptors, and waiting for them */
    "read", "readv", "write", "writev", "pread64", "close", "recvfrom", "recvmsg",
    "sendmsg", "sendto", "shutdown", "accept", "accept4", "epoll_wait", "epoll_pwait",
    "epoll_pwait2", "epoll_ctl", "poll", "ppoll", "select", "pselect6", "dup", "lseek",
    "getsockname", "getpeername", "getsockopt", "setsockopt", "timerfd_settime",
    /* the configuration, and figures of /proc; openat has a rule of its own */
    "stat", "fstat", "lstat", "newfstatat", "statx", "fstatfs", "statfs", "access",
    "faccessat", "faccessat2", "getdents64", "readlink", "readlinkat", "getcwd",
    /* a data socket that was removed is made again */
    "connect", "bind", "listen", "mkdir", "mkdirat", "chmod", "fchmodat", "lchown",
    "fchownat", "umask", "unlink", "unlinkat", "flock",
    /* memory */
    "munmap", "mremap", "madvise", "brk", "mlock", "munlock",
    /* threads */
    "futex", "futex_waitv", "set_robust_list", "get_robust_list", "rseq", "membarrier",
    "sched_yield", "sched_getaffinity", "sched_getparam", "sched_getscheduler",
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "sigaltstack",
    "rt_sigtimedwait", "restart_syscall", "exit", "exit_group", "set_tid_address",
    /* time, chance, and who one is */
    "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday",
    "time", "getrandom", "getpid", "gettid", "getppid", "getuid", "geteuid", "getgid",
    "getegid", "getgroups", "getrlimit", "getrusage", "sysinfo", "times", "uname",
    "getcpu", "sched_setaffinity",
    /* the same on 32 bits */
    "clock_gettime64", "clock_nanosleep_time64", "futex_time64", "ppoll_time64",
    "pselect6_time64", "rt_sigtimedwait_time64", "epoll_pwait2", "recv", "send",
    "_llseek", "ugetrlimit", "getuid32", "geteuid32", "getgid32", "getegid32",
    "getgroups32", "fstat64", "stat64", "lstat64", "fstatat64", "_newselect"};

/* No part of this daemon, whatever a later libc does: who calls these is an intruder. */
static const char *const deadly[] = {"execve", "execveat", "fork", "vfork", "ptrace",
    "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd", "bpf",
    "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter",
    "io_uring_register", "mount", "umount2", "pivot_root", "chroot", "unshare", "setns",
    "init_module", "finit_module", "kexec_load", "setuid", "setgid", "setreuid",
    "setregid", "setresuid", "setresgid", "setgroups", "socketpair", "link", "linkat",
    "symlink", "symlinkat", "rename", "renameat", "renameat2", "mknod", "mknodat",
    "truncate", "ftruncate", "keyctl", "add_key", "request_key"};

/* libseccomp's way of saying that this architecture has no such call. */
static int
rule_add(scmp_filter_ctx filter, uint32_t action, const char *name, unsigned n,
    const struct scmp_arg_cmp *args)
{
	int nr = seccomp_syscall_resolve_name(name), r;

	if (nr == __NR_SCMP_ERROR || nr < 0)
		return 0;
	r = seccomp_rule_add_array(filter, action, nr, n, args);
	return r == -EEXIST ? 0 : r;
}

/* A call that is allowed when its argument number arg, masked, has this value. */
static int
allow_if(scmp_filter_ctx filter, const char *name, unsigned arg, uint64_t mask,
    uint64_t value)
{
	struct scmp_arg_cmp cmp = {
	    .arg = arg, .op = SCMP_CMP_MASKED_EQ, .datum_a = mask, .datum_b = value};

	return rule_add(filter, SCMP_ACT_ALLOW, name, 1, &cmp);
}

#define INT_MASK UINT64_C(0xffffffff) /* the kernel looks at an int alone */

static int
add_conditions(scmp_filter_ctx filter)
{
	const struct {
		const char *name;
		unsigned arg;
		uint64_t mask, value;
	} rows[] = {
	    /* files are read; nothing but a socket's lock is ever written or made */
	    {"open", 1, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY},
	    {"openat", 2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY},
	    {"openat", 2, INT_MASK,
		O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK},
	    {"socket", 0, INT_MASK, AF_UNIX},
	    /* a thread, never a process */
	    {"clone", 0, CLONE_THREAD, CLONE_THREAD},
	    /* no code but what is there */
	    {"mmap", 2, PROT_EXEC, 0},
	    {"mmap2", 2, PROT_EXEC, 0},
	    {"mprotect", 2, PROT_EXEC, 0},
	    {"fcntl", 1, INT_MASK, F_GETFD},
	    {"fcntl", 1, INT_MASK, F_SETFD},
	    {"fcntl", 1, INT_MASK, F_GETFL},
	    {"fcntl", 1, INT_MASK, F_SETFL},
	    {"fcntl", 1, INT_MASK, F_DUPFD_CLOEXEC},
	    {"fcntl64", 1, INT_MASK, F_GETFL},
	    {"fcntl64", 1, INT_MASK, F_SETFL},
	    {"ioctl", 1, INT_MASK, FIONREAD},
	    /* limits are looked at, in this process */
	    {"prlimit64", 2, UINT64_MAX, 0},
	    /* abort() of a failed assertion, and a thread's name */
	    {"tgkill", 0, INT_MASK, (uint64_t)getpid()},
	    {"prctl", 0, INT_MASK, PR_SET_NAME},
	    {"prctl", 0, INT_MASK, PR_GET_DUMPABLE},
	};
	int r = 0;

	for (size_t i = 0; !r && i < sizeof(rows) / sizeof(rows[0]); i++)
		r = allow_if(
		    filter, rows[i].name, rows[i].arg, rows[i].mask, rows[i].value);
	/* Its flags lie in memory, where no filter can look: libc then takes clone. */
	if (!r)
		r = rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), "clone3", 0, NULL);
	return r;
}

static int
add_names(scmp_filter_ctx filter)
{
	int r = 0;

	for (size_t i = 0; !r && i < sizeof(allowed) / sizeof(allowed[0]); i++)
		r = rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0, NULL);
	for (size_t i = 0; !r && i < sizeof(deadly) / sizeof(deadly[0]); i++)
		r = rule_add(filter, SCMP_ACT_KILL_PROCESS, deadly[i], 0, NULL);
	return r;
}

int
sandbox_enter(void)
{
	scmp_filter_ctx filter;
	int r;

	if (fault_build() && !fault("sandbox-on"))
		return SANDBOX_E_LEFT_OUT;
	filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	if (!filter)
		return -ENOMEM;
	/* Shards run already: the filter is put on all threads, or on none. */
	r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
	/* A program of another ABI (32 bits) has other numbers: it is killed. */
	if (!r)
		r = seccomp_attr_set(
		    filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (!r)
		r = add_names(filter);
	if (!r)
		r = add_conditions(filter);
	if (!r)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return r;
}

/* The calls that the tests try, and what became of those that returned. */
void
sandbox_try(void)
{
	static char *const no_args[] = {NULL};
	static _Alignas(4096) char page[4096];
	long r = 0;

	errno = 0;
	if (fault("sandbox-execve"))
		r = execve("/bin/true", no_args, no_args);
	else if (fault("sandbox-fork"))
		r = fork();
	else if (fault("sandbox-ptrace"))
		r = ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	else if (fault("sandbox-inet"))
		r = socket(AF_INET, SOCK_STREAM, 0);
	else if (fault("sandbox-write"))
		r = open("/dev/null", O_WRONLY);
	else if (fault("sandbox-code"))
		r = mprotect(page, 1, PROT_READ | PROT_EXEC);
	else
		return;
	log_event(LOG_NOTICE, "sandbox-try", "%s",
	    r < 0 ? strerror(errno) : "it was let through");
}
