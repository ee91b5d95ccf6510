/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_memfd_secret COMMAND ARGS...: runs a command for which memfd_secret(2) does not
 * exist, as on a kernel without it: a seccomp filter answers ENOSYS. With -m, mlock(2)
 * and its kin are refused too (EPERM); with -i, sockets that are not AF_UNIX instead
 * (EAFNOSUPPORT), as RestrictAddressFamilies= of a unit does. The filter survives exec
 * and does nothing else.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MEMFD_SECRET 447 /* the same number on every architecture */

#define LOAD_NUMBER \
 BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define REFUSE(number, error)                         \
 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), \
     BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
/* The lower half of a system call's first argument. */
#define LOAD_FIRST                                                      \
 BPF_STMT(                                                              \
     BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]) + \
				   (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static int
install(struct sock_filter *filter, size_t n)
{
	struct sock_fprog program = {(unsigned short)n, filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int
main(int argc, char **argv)
{
	struct sock_filter no_secret[] = {
	    LOAD_NUMBER, REFUSE(MEMFD_SECRET, ENOSYS), ALLOW};
	struct sock_filter no_lock[] = {LOAD_NUMBER, REFUSE(MEMFD_SECRET, ENOSYS),
	    REFUSE(SYS_mlock, EPERM), REFUSE(SYS_mlock2, EPERM),
	    REFUSE(SYS_mlockall, EPERM), ALLOW};
	struct sock_filter no_inet[] = {LOAD_NUMBER,
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3), LOAD_FIRST,
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 1, 0),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT), ALLOW};
	int first = 1, r;

	if (argc > 1 && !strcmp(argv[1], "-m")) {
		first = 2;
		r = install(no_lock, sizeof(no_lock) / sizeof(no_lock[0]));
	} else if (argc > 1 && !strcmp(argv[1], "-i")) {
		first = 2;
		r = install(no_inet, sizeof(no_inet) / sizeof(no_inet[0]));
	} else {
		r = install(no_secret, sizeof(no_secret) / sizeof(no_secret[0]));
	}
	if (r || first >= argc) {
		perror("no_memfd_secret");
		return 126;
	}
	execvp(argv[first], argv + first);
	perror(argv[first]);
	return 127;
}
