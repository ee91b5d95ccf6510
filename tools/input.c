/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input.c: reading a value from a file, a pipe or a person. A stream is complete when it
 * holds a value of the right length, so that a program which keeps our standard input
 * open need not close it; otherwise at its end.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"

#define PASTE_PAUSE_MS \
 300 /* a person's paste is over when nothing came for this long */
#define PEER_POLL_MS 50

static uint64_t
now_ms(void)
{
	return ctl_now_ns() / 1000000;
}

/*
 * Our own output "share: 12ab..." may come back whole: the value is what stands between
 * the label and the end of its line.
 */
static void
strip_label(struct io_input *in)
{
	size_t i = 0;
	uint8_t *end;

	while (i < in->len && in->bytes[i] >= 'a' && in->bytes[i] <= 'z')
		i++;
	if (i == 0 || i > 16 || in->len < i + 2 || in->bytes[i] != ':' ||
	    in->bytes[i + 1] != ' ')
		return;
	i += 2;
	end = memchr(in->bytes + i, '\n', in->len - i);
	in->len = (end ? (size_t)(end - in->bytes) : in->len) - i;
	memmove(in->bytes, in->bytes + i, in->len);
}

static int
decode(const struct ctl *ctl, const struct io_wanted *wanted, struct io_input *in)
{
	if (!wanted->secret && ctl->in_format != BYTES_RAW)
		strip_label(in);
	return bytes_decode(ctl->in_format, in->bytes, &in->len);
}

/* Is what has come so far a whole value? Looks at a copy. */
static bool
is_whole(const struct ctl *ctl, const struct io_wanted *wanted,
    const struct io_input *so_far)
{
	struct io_input copy = *so_far;
	bool whole = decode(ctl, wanted, &copy) == 0 && copy.len == wanted->len;

	mlkemclient_wipe(&copy, sizeof(copy));
	return whole;
}

static bool
more_comes(int fd, int timeout_ms)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	return poll(&pfd, 1, timeout_ms) > 0 && (pfd.revents & POLLIN);
}

/* Reads to the end, or until a value is whole. -1: errno says why. */
static int
read_stream(const struct ctl *ctl, int fd, bool to_end, const struct io_wanted *wanted,
    struct io_input *in)
{
	bool person = isatty(fd);

	in->len = 0;
	while (in->len < sizeof(in->bytes)) {
		ssize_t n = read(fd, in->bytes + in->len, sizeof(in->bytes) - in->len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			return 0;
		in->len += (size_t)n;
		if (!to_end && is_whole(ctl, wanted, in) && !more_comes(fd, 0))
			return 0;
		if (person && !more_comes(fd, PASTE_PAUSE_MS))
			return 0;
	}
	errno = EFBIG;
	return -1;
}

static int
explain_decode(const struct ctl *ctl, const struct io_wanted *wanted, const char *from,
    int condition)
{
	if (condition == BYTES_E_ODD)
		return ctl_fail(ctl, CTL_REFUSED,
		    "%s from %s ends in half a byte: part of it is missing",
		    wanted->what, from);
	return ctl_fail(ctl, CTL_REFUSED,
	    "%s from %s is not %s; allowed are hex, base64 and raw bytes "
	    "(--in-format names one)",
	    wanted->what, from, ctl->in_format == BYTES_BASE64 ? "base64" : "hex");
}

static int
finish(const struct ctl *ctl, const char *path, const struct io_wanted *wanted,
    struct io_input *in)
{
	const char *from = path ? path : "standard input";
	int condition = decode(ctl, wanted, in);

	if (condition)
		return explain_decode(ctl, wanted, from, condition);
	if (in->len == 0)
		return ctl_fail(ctl, CTL_REFUSED,
		    "no %s came from %s (%zu bytes "
		    "expected, as hex, base64 or raw)",
		    wanted->what, from, wanted->len);
	return CTL_OK;
}

/* A long run of hex or base64 where a file name should stand is somebody's key. */
static bool
looks_like_value(const char *path)
{
	size_t len = strlen(path);

	return len >= 64 && !strchr(path, '/') &&
	       bytes_guess((const uint8_t *)path, len) != BYTES_RAW;
}

static int
explain_open(const struct ctl *ctl, const struct io_wanted *wanted, const char *path)
{
	int saved = errno;

	if (looks_like_value(path))
		return ctl_fail(ctl, CTL_USAGE,
		    "%s takes the name of a file, not the value: everybody on this "
		    "machine can read the arguments of a process",
		    wanted->option);
	return ctl_fail(ctl, CTL_FAILED, "cannot read %s %s: %s", wanted->option, path,
	    strerror(saved));
}

int
io_read(const struct ctl *ctl, const char *path, const struct io_wanted *wanted,
    struct io_input *in)
{
	int fd, rc, saved;

	if (path && strcmp(path, "-") == 0)
		path = NULL;
	if (!path && isatty(STDIN_FILENO))
		ctl_note("paste the %s (hex or base64, %zu bytes) and press Enter",
		    wanted->what, wanted->len);
	fd = path ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
	if (fd < 0)
		return explain_open(ctl, wanted, path);
	rc = read_stream(ctl, fd, path != NULL, wanted, in);
	saved = errno;
	if (path)
		close(fd);
	if (rc < 0 && saved == EFBIG)
		return ctl_fail(ctl, CTL_REFUSED,
		    "%s from %s is over %d bytes of text; it should be %zu bytes",
		    wanted->what, path ? path : "standard input", IO_MAX_INPUT,
		    wanted->len);
	if (rc < 0)
		return ctl_fail(ctl, CTL_FAILED, "cannot read %s from %s: %s",
		    wanted->what, path ? path : "standard input", strerror(saved));
	return finish(ctl, path, wanted, in);
}

static uint64_t
mtime_ns(const struct stat *st)
{
	return (uint64_t)st->st_mtim.tv_sec * 1000000000 +
	       (uint64_t)st->st_mtim.tv_nsec;
}

void
io_peer_init(struct io_peer *peer, const char *path)
{
	struct stat st;

	*peer = (struct io_peer){.path = path};
	if (path && stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
		peer->stale = true;
		peer->ino = st.st_ino;
		peer->mtime_ns = mtime_ns(&st);
	}
}

/* Waits until path is a file that holds a whole value or has stopped growing. */
static void
wait_for_file(const struct ctl *ctl, const char *path, const struct io_wanted *wanted,
    uint32_t wait_ms)
{
	uint64_t until = now_ms() + wait_ms, quiet_since = now_ms();
	struct io_input in;
	size_t last = 0;

	while (now_ms() < until) {
		struct stat st;
		int fd;

		if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
			return;
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0) {
			int rc = read_stream(ctl, fd, true, wanted, &in);

			close(fd);
			if (rc < 0 || is_whole(ctl, wanted, &in))
				return;
			if (in.len != last)
				quiet_since = now_ms();
			last = in.len;
			if (in.len > 0 && now_ms() - quiet_since > PASTE_PAUSE_MS)
				return;
		} else if (errno != ENOENT) {
			return;
		}
		poll(NULL, 0, PEER_POLL_MS);
	}
}

int
io_peer_read(const struct ctl *ctl, const struct io_peer *peer,
    const struct io_wanted *wanted, uint32_t wait_ms, struct io_input *in)
{
	struct stat st;

	if (!peer->path || strcmp(peer->path, "-") == 0)
		return io_read(ctl, NULL, wanted, in);
	wait_for_file(ctl, peer->path, wanted, wait_ms);
	if (stat(peer->path, &st) < 0)
		return ctl_fail(ctl, CTL_FAILED,
		    "no answer: --peer %s did not appear within %u s", peer->path,
		    wait_ms / 1000);
	if (peer->stale && st.st_ino == peer->ino && mtime_ns(&st) == peer->mtime_ns)
		ctl_note("--peer %s is older than the key just made, so it cannot "
			 "answer it: the fingerprint will match nobody's",
		    peer->path);
	return io_read(ctl, peer->path, wanted, in);
}
