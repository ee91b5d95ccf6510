/* SPDX-License-Identifier: Apache-2.0 */
#include "paths.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kem/fault.h"

/* A file that an option names, or that a standard stream is. */
struct place {
	const char *option;
	bool written;
	bool exists; /* and is a regular file: then dev and ino tell it */
	dev_t dev;
	ino_t ino;
	char name[PATH_MAX + NAME_MAX + 2]; /* of the new file, its folder resolved */
};

enum { N_PLACES = 9 };

static void
place_stat(struct place *place, const struct stat *st)
{
	place->exists = S_ISREG(st->st_mode);
	place->dev = st->st_dev;
	place->ino = st->st_ino;
}

/* Pipes, sockets and devices are no places: nothing is lost by writing there. */
static bool
place_of_path(struct place *place, const char *option, const char *path, bool written)
{
	char folder[PATH_MAX], copy[PATH_MAX], last[PATH_MAX];
	size_t len = path ? strlen(path) : 0;
	struct stat st;

	if (!path || strcmp(path, "-") == 0 || len >= sizeof(copy))
		return false;
	*place = (struct place){.option = option, .written = written};
	if (stat(path, &st) == 0) {
		place_stat(place, &st);
		return place->exists;
	}
	memcpy(copy, path, len + 1);
	memcpy(last, path, len + 1);
	if (!realpath(dirname(copy), folder))
		return false;
	snprintf(place->name, sizeof(place->name), "%s/%s", folder, basename(last));
	return true;
}

static bool
place_of_stream(struct place *place, const char *option, int fd, bool written)
{
	struct stat st;

	*place = (struct place){.option = option, .written = written};
	if (fstat(fd, &st) < 0)
		return false;
	place_stat(place, &st);
	return place->exists;
}

static bool
place_same(const struct place *a, const struct place *b)
{
	if (a->exists != b->exists)
		return false;
	if (a->exists)
		return a->dev == b->dev && a->ino == b->ino;
	return strcmp(a->name, b->name) == 0;
}

static bool
is_stream(const char *path)
{
	return !path || strcmp(path, "-") == 0;
}

static unsigned
collect(const struct ctl *ctl, struct place places[N_PLACES])
{
	unsigned n = 0;

	n += place_of_path(&places[n], "--in", ctl->in_path, false);
	n += place_of_path(&places[n], "--key", ctl->key_path, false);
	n += place_of_path(&places[n], "--peer", ctl->peer_path, false);
	n += place_of_path(&places[n], "--out", ctl->out_path, true);
	n += place_of_path(&places[n], "--secret-out", ctl->secret_path, true);
	n += place_of_path(&places[n], "--export", ctl->export_path, true);
	n += place_of_path(&places[n], "--plot", ctl->bench.plot_path, true);
	if (is_stream(ctl->in_path))
		n += place_of_stream(&places[n], "standard input", STDIN_FILENO, false);
	n += place_of_stream(&places[n], "standard output", STDOUT_FILENO, true);
	return n;
}

int
paths_check(const struct ctl *ctl)
{
	struct place places[N_PLACES];
	unsigned n = collect(ctl, places);

	for (unsigned i = 0; i < n && !fault("ctl-one-file"); i++) {
		for (unsigned j = i + 1; j < n; j++) {
			if ((places[i].written || places[j].written) &&
			    place_same(&places[i], &places[j]))
				return ctl_fail(ctl, CTL_USAGE,
				    "%s and %s are one file, and what is written "
				    "there last would be all that is left of it: "
				    "name two",
				    places[i].option, places[j].option);
		}
	}
	return CTL_OK;
}
