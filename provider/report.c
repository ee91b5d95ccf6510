/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "kem/fault.h"
#include "provider.h"

#define LOG_SOCKET "/dev/log"
#define REPORT_MAX 512
#define EVERY_US   60000000u

static uint64_t
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000u + (uint64_t)ts.tv_nsec / 1000u;
}

/* The tests listen beside the daemon's socket. */
static void
log_path(const struct provider *provider, char *path, size_t size)
{
	const char *slash = strrchr(provider->config.socket, '/');

	snprintf(path, size, "%s", LOG_SOCKET);
	if (fault("provider-log-beside-socket") && slash != NULL)
		snprintf(path, size, "%.*s/log", (int)(slash - provider->config.socket),
		    provider->config.socket);
}

static void
send_line(const struct provider *provider, int level, const char *text)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	char line[REPORT_MAX];
	int fd, n, err = errno;

	n = snprintf(line, sizeof(line), "<%d>%s[%ld]: mlkemd provider: %s",
	    LOG_DAEMON | level, program_invocation_short_name, (long)getpid(), text);
	if (n >= (int)sizeof(line))
		n = sizeof(line) - 1;
	log_path(provider, addr.sun_path, sizeof(addr.sun_path));
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0) {
		(void)!sendto(fd, line, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL,
		    (struct sockaddr *)&addr, sizeof(addr));
		close(fd);
	}
	errno = err;
}

void
report_mistake(const struct provider *provider, const char *mistake)
{
	char text[REPORT_MAX];

	snprintf(text, sizeof(text), "not loaded: in openssl.cnf, %s", mistake);
	send_line(provider, LOG_ERR, text);
}

void
report_fallbacks(struct provider *provider)
{
	struct exchange *exchange = &provider->exchange;
	uint64_t told =
	    atomic_load_explicit(&exchange->fallbacks_told, memory_order_relaxed);
	struct mlkemclient_counts counts;
	uint64_t next, now;
	char text[REPORT_MAX];

	if (provider->config.route == CONFIG_ROUTE_LOCAL)
		return; /* nothing that could fall back: spare the counters' lock */
	mlkemclient_get_counts(exchange->tls, &counts);
	if (counts.fallbacks < told)
		told = 0; /* a child counts anew */
	if (counts.fallbacks == told)
		return;
	now = now_us();
	next = atomic_load_explicit(&exchange->tell_next_us, memory_order_relaxed);
	/* Whoever moves the time is the one to tell. */
	if ((now < next && !fault("provider-log-always")) ||
	    !atomic_compare_exchange_strong(
		&exchange->tell_next_us, &next, now + EVERY_US))
		return;
	atomic_store_explicit(
	    &exchange->fallbacks_told, counts.fallbacks, memory_order_relaxed);
	snprintf(text, sizeof(text),
	    "%" PRIu64 " operations were worked in this process since the last such "
	    "line: the daemon at %s did not do them (in all: %" PRIu64
	    " by the daemon, "
	    "%" PRIu64 " fallbacks, %" PRIu64 " timeouts)",
	    counts.fallbacks - told, provider->config.socket, counts.by_daemon,
	    counts.fallbacks, counts.timeouts);
	send_line(provider, LOG_WARNING, text);
}
