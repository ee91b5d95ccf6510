/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel knows of this process, under the names that dashboards expect. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "metrics_text.h"

/* Pages in all and resident, of /proc/self/statm; zeros if it can't be read. */
static void
read_statm(unsigned long long *virtual_pages, unsigned long long *resident_pages)
{
	char text[128], *end;
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	*virtual_pages = strtoull(text, &end, 10);
	*resident_pages = strtoull(end, NULL, 10);
}

/* Without the one that is open for counting. */
static unsigned
count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	unsigned n = 0;

	if (!dir)
		return 0;
	/* The directory is this call's alone. */
	/* cppcheck-suppress readdirCalled */
	while ((entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n ? n - 1 : 0;
}

static void
process_value(struct metrics_out *out, const char *name, const char *type,
    const char *help, unsigned long long value)
{
	metrics_out_head(out, name, type, help);
	metrics_out_add(out, "%s %llu\n", name, value);
}

void
metrics_process(struct metrics_out *out, const struct metrics_view *view)
{
	unsigned long long virtual_pages, resident_pages;
	unsigned long long page = (unsigned long long)sysconf(_SC_PAGESIZE);
	struct rlimit limit = {0};
	struct timespec cpu = {0};

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	getrlimit(RLIMIT_NOFILE, &limit);
	read_statm(&virtual_pages, &resident_pages);
	metrics_out_head(out, "process_cpu_seconds_total", "counter",
	    "User and system CPU time spent, in seconds.");
	metrics_out_add(out, "process_cpu_seconds_total %llu.%06lu\n",
	    (unsigned long long)cpu.tv_sec, (unsigned long)(cpu.tv_nsec / 1000));
	process_value(out, "process_resident_memory_bytes", "gauge",
	    "Resident memory, in bytes.", resident_pages * page);
	process_value(out, "process_virtual_memory_bytes", "gauge",
	    "Virtual memory, in bytes.", virtual_pages * page);
	process_value(
	    out, "process_open_fds", "gauge", "Open file descriptors.", count_fds());
	process_value(out, "process_max_fds", "gauge",
	    "Most file descriptors that may be open.",
	    (unsigned long long)limit.rlim_cur);
	metrics_out_head(out, "process_start_time_seconds", "gauge",
	    "When the process started, in seconds since the epoch.");
	metrics_out_add(out, "process_start_time_seconds %llu.%06llu\n",
	    (unsigned long long)view->started_unix_us / 1000000,
	    (unsigned long long)view->started_unix_us % 1000000);
}
