/* SPDX-License-Identifier: Apache-2.0 */
#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kem/fault.h"

static int
write_all(int fd, const uint8_t *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

/* "DIR/.mlkemctl.XXXXXX" for mkostemp(), in the directory of path. */
static int
temporary_name(const char *path, char *name, size_t size)
{
	char copy[PATH_MAX];

	if ((size_t)snprintf(copy, sizeof(copy), "%s", path) >= sizeof(copy))
		return -1;
	if ((size_t)snprintf(name, size, "%s/.mlkemctl.XXXXXX", dirname(copy)) >= size)
		return -1;
	return 0;
}

/* Puts a whole new file of mode 0600 (then mode) in path's place. -1: errno says why. */
static int
replace_file(const char *path, mode_t mode, const uint8_t *data, size_t len)
{
	char name[PATH_MAX];
	int fd, saved;

	if (temporary_name(path, name, sizeof(name)) < 0) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (write_all(fd, data, len) < 0 || fchmod(fd, mode) < 0 || fsync(fd) < 0 ||
	    rename(name, path) < 0) {
		saved = errno;
		close(fd);
		unlink(name);
		errno = saved;
		return -1;
	}
	close(fd);
	return 0;
}

bool
io_out_is_bare(const struct ctl *ctl)
{
	if (ctl->json)
		return false;
	if (ctl->out_path)
		return strcmp(ctl->out_path, "-") == 0;
	return ctl->format == BYTES_RAW;
}

/* 0644 minus the umask: what a plain open(2) would have made. */
static mode_t
public_mode(void)
{
	mode_t mask = umask(022);

	umask(mask);
	return 0644 & ~mask;
}

int
io_write_file(const struct ctl *ctl, mode_t mode, const uint8_t *data, size_t len)
{
	struct stat st;
	int fd, rc;

	/* Whole at once, since the peer may be waiting for it; but not over a pipe. */
	if (stat(ctl->out_path, &st) < 0 || S_ISREG(st.st_mode)) {
		rc = replace_file(ctl->out_path, mode, data, len);
	} else {
		fd = open(ctl->out_path, O_WRONLY | O_CLOEXEC);
		rc = fd < 0 ? -1 : write_all(fd, data, len);
		if (fd >= 0)
			close(fd);
	}
	if (rc < 0)
		return ctl_fail(ctl, CTL_FAILED, "cannot write --out %s: %s",
		    ctl->out_path, strerror(errno));
	return CTL_OK;
}

int
io_write_public(
    const struct ctl *ctl, const char *label, const uint8_t *data, size_t len)
{
	bool to_file = ctl->out_path && strcmp(ctl->out_path, "-") != 0;
	enum bytes_format format = ctl->format;
	uint8_t text[2 * MLKEMCLIENT_MAX_SHARE + 2];
	size_t n;

	if (format == BYTES_AUTO)
		format = to_file ? BYTES_RAW : BYTES_HEX;
	n = bytes_encode(format, data, len, text);
	if (format != BYTES_RAW)
		text[n++] = '\n';
	if (to_file)
		return io_write_file(ctl, public_mode(), text, n);
	if (!io_out_is_bare(ctl))
		printf("%s: ", label);
	if (fwrite(text, 1, n, stdout) != n || fflush(stdout) != 0)
		return ctl_fail(ctl, CTL_FAILED, "cannot write to standard output: %s",
		    strerror(errno));
	return CTL_OK;
}

/* A new file takes the old one's place: it is the folder that has to let us. */
static int
check_folder(const struct ctl *ctl, const char *option, const char *path)
{
	char copy[PATH_MAX];

	if ((size_t)snprintf(copy, sizeof(copy), "%s", path) >= sizeof(copy))
		return ctl_fail(
		    ctl, CTL_FAILED, "%s: %s", option, strerror(ENAMETOOLONG));
	if (access(dirname(copy), W_OK | X_OK) < 0)
		return ctl_fail(ctl, CTL_FAILED, "cannot write %s %s: %s", option, path,
		    strerror(errno));
	return CTL_OK;
}

int
io_check_out_path(const struct ctl *ctl)
{
	struct stat st;

	if (!ctl->out_path || strcmp(ctl->out_path, "-") == 0)
		return CTL_OK;
	if (stat(ctl->out_path, &st) < 0 || S_ISREG(st.st_mode))
		return check_folder(ctl, "--out", ctl->out_path);
	if (S_ISDIR(st.st_mode) || access(ctl->out_path, W_OK) < 0)
		return ctl_fail(ctl, CTL_FAILED, "cannot write --out %s: %s",
		    ctl->out_path, strerror(S_ISDIR(st.st_mode) ? EISDIR : errno));
	return CTL_OK;
}

int
io_check_secret_path(const struct ctl *ctl, const char *option, const char *path)
{
	struct stat st;

	if (strcmp(path, "-") == 0)
		return ctl_fail(ctl, CTL_USAGE,
		    "%s takes the name of a file: a secret is never printed", option);
	if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return ctl_fail(ctl, CTL_FAILED,
		    "%s %s is not a regular file: a secret only goes to a file of its "
		    "own, mode 0600",
		    option, path);
	return check_folder(ctl, option, path);
}

int
io_write_secret(
    const struct ctl *ctl, const char *path, const uint8_t *data, size_t len)
{
	enum bytes_format format = ctl->format == BYTES_AUTO ? BYTES_RAW : ctl->format;
	mode_t mode = fault("ctl-wide-secret") ? 0644 : 0600;
	uint8_t text[2 * MLKEMCLIENT_MAX_PRIVATE_KEY + 2];
	size_t n = bytes_encode(format, data, len, text);
	int rc;

	if (format != BYTES_RAW)
		text[n++] = '\n';
	rc = replace_file(path, mode, text, n);
	mlkemclient_wipe(text, sizeof(text));
	if (rc < 0)
		return ctl_fail(
		    ctl, CTL_FAILED, "cannot write %s: %s", path, strerror(errno));
	return CTL_OK;
}

int
io_fingerprint(const struct ctl *ctl, const uint8_t *secret, size_t len,
    char text[IO_FINGERPRINT_TEXT])
{
	uint8_t hash[EVP_MAX_MD_SIZE];
	unsigned hash_len = 0;

	if (!EVP_Digest(secret, len, hash, &hash_len, EVP_sha256(), NULL))
		return ctl_fail(ctl, CTL_FAILED, "SHA-256 failed in libcrypto");
	if (fault("ctl-fingerprint-is-secret"))
		memcpy(hash, secret, 8);
	text[bytes_encode(BYTES_HEX, hash, 8, (uint8_t *)text)] = '\0';
	mlkemclient_wipe(hash, sizeof(hash));
	return CTL_OK;
}
