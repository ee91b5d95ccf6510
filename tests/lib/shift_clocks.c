/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shift_clocks.so, for LD_PRELOAD: a program whose clocks somebody sets. The file that
 * SHIFT_CLOCKS names holds two native int64, nanoseconds that are added to CLOCK_BOOTTIME
 * (the machine was asleep) and to CLOCK_REALTIME (an administrator, a leap, NTP). It may
 * be changed while the program runs: it is mapped, once.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define EXPORT    __attribute__((visibility("default")))
#define SECOND_NS INT64_C(1000000000)

struct shifts {
	_Atomic int64_t boottime_ns, realtime_ns;
};

static const struct shifts *shifts;
static int (*next_gettime)(clockid_t, struct timespec *);

/* Before a sandbox might object. */
__attribute__((constructor)) static void
open_shifts(void)
{
	const char *path = getenv("SHIFT_CLOCKS");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *map;

	next_gettime =
	    (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	if (fd < 0 || !next_gettime)
		abort();
	map = mmap(NULL, sizeof(*shifts), PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		abort();
	shifts = map;
	close(fd);
}

static void
add_ns(struct timespec *ts, int64_t ns)
{
	int64_t sum = ts->tv_nsec + ns % SECOND_NS;

	ts->tv_sec += ns / SECOND_NS + (sum >= SECOND_NS) - (sum < 0);
	ts->tv_nsec =
	    sum + (sum < 0 ? SECOND_NS : 0) - (sum >= SECOND_NS ? SECOND_NS : 0);
}

EXPORT int
clock_gettime(clockid_t clock, struct timespec *ts)
{
	int r = next_gettime ? next_gettime(clock, ts) : -1;

	if (!r && clock == CLOCK_BOOTTIME)
		add_ns(ts, atomic_load(&shifts->boottime_ns));
	if (!r && clock == CLOCK_REALTIME)
		add_ns(ts, atomic_load(&shifts->realtime_ns));
	return r;
}
