/* SPDX-License-Identifier: Apache-2.0 */
/*
 * short_io.so, for LD_PRELOAD: sockets that move a few bytes at a time, and now and then
 * say EINTR or EAGAIN first, as a loaded kernel may. SHORT_IO_MAX is the most bytes a
 * call moves (default 1). Programs must not notice.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define EXPORT     __attribute__((visibility("default")))
#define IOV_PIECES 64

static _Atomic uint32_t n_calls;

static size_t
most(void)
{
	const char *text = getenv("SHORT_IO_MAX");
	unsigned long n = text ? strtoul(text, NULL, 10) : 1;

	return n ? n : 1;
}

/* Every 7th call is interrupted, every 11th finds nothing to do. */
static int
disturbed(void)
{
	uint32_t n = atomic_fetch_add(&n_calls, 1);

	errno = n % 7 == 3 ? EINTR : EAGAIN;
	return n % 7 == 3 || n % 11 == 5;
}

static size_t
cut(size_t n)
{
	return n < most() ? n : most();
}

EXPORT ssize_t
recv(int fd, void *buf, size_t n, int flags)
{
	ssize_t (*next)(int, void *, size_t, int) =
	    (ssize_t(*)(int, void *, size_t, int))dlsym(RTLD_NEXT, "recv");

	return disturbed() ? -1 : next(fd, buf, cut(n), flags);
}

EXPORT ssize_t
send(int fd, const void *buf, size_t n, int flags)
{
	ssize_t (*next)(int, const void *, size_t, int) =
	    (ssize_t(*)(int, const void *, size_t, int))dlsym(RTLD_NEXT, "send");

	return disturbed() ? -1 : next(fd, buf, cut(n), flags);
}

/* The front of a message's pieces, most() bytes in all. */
static void
shorten(struct msghdr *msg, struct iovec *iov)
{
	size_t left = most(), n = 0;

	for (; n < msg->msg_iovlen && n < IOV_PIECES && left > 0; n++) {
		iov[n] = msg->msg_iov[n];
		if (iov[n].iov_len > left)
			iov[n].iov_len = left;
		left -= iov[n].iov_len;
	}
	msg->msg_iov = iov;
	msg->msg_iovlen = n;
}

EXPORT ssize_t
recvmsg(int fd, struct msghdr *msg, int flags)
{
	ssize_t (*next)(int, struct msghdr *, int) =
	    (ssize_t(*)(int, struct msghdr *, int))dlsym(RTLD_NEXT, "recvmsg");
	struct msghdr mine = *msg;
	struct iovec iov[IOV_PIECES];

	if (disturbed())
		return -1;
	shorten(&mine, iov);
	ssize_t n = next(fd, &mine, flags);
	msg->msg_flags = mine.msg_flags;
	msg->msg_controllen = mine.msg_controllen;
	return n;
}

EXPORT ssize_t
sendmsg(int fd, const struct msghdr *msg, int flags)
{
	ssize_t (*next)(int, const struct msghdr *, int) =
	    (ssize_t(*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT, "sendmsg");
	struct msghdr mine = *msg;
	struct iovec iov[IOV_PIECES];

	if (disturbed())
		return -1;
	shorten(&mine, iov);
	return next(fd, &mine, flags);
}
