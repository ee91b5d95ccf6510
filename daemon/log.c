/* SPDX-License-Identifier: Apache-2.0 */
#include "log.h"

#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kem/fault.h"

#define LINE_BYTES     1024
#define LIMIT_SLOTS    64 /* more than there are event names */
#define LIMIT_FIRST_MS 1000u
#define LIMIT_LAST_MS  32000u

static _Atomic int log_level = LOG_INFO;

static pthread_mutex_t write_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t n_lost; /* lines since the last one written; under write_lock */

/*
 * When an event's line last passed, how long the next one has to wait, and how many did
 * not pass since. What goes on for long is told ever more rarely. The slot is the name's
 * hash: two events that share one are limited together, which loses lines, not counts.
 */
static struct log_limit {
	_Atomic uint64_t passed_ms;
	_Atomic uint64_t interval_ms;
	_Atomic uint64_t n_suppressed;
} log_limits[LIMIT_SLOTS];

void
log_set_level(int level)
{
	atomic_store_explicit(&log_level, level, memory_order_relaxed);
}

static bool
log_wanted(int level)
{
	return level <= atomic_load_explicit(&log_level, memory_order_relaxed);
}

/* Peers write into some texts: control bytes and what is not ASCII become \xNN. */
static size_t
log_escape(char *out, size_t size, const char *text)
{
	size_t used = 0;

	for (; *text && used + 5 < size; text++) {
		unsigned char c = (unsigned char)*text;

		if (c >= 0x20 && c < 0x7f)
			out[used++] = (char)c;
		else
			used += (size_t)snprintf(out + used, 5, "\\x%02x", c);
	}
	return used;
}

static size_t
log_count(char *out, uint64_t n, const char *what)
{
	if (n == 0)
		return 0;
	return (size_t)snprintf(out, 48, " (%llu %s)", (unsigned long long)n, what);
}

/*
 * A reader that has stopped must not stop the daemon: a line for which there is no room
 * is counted and left out. A pipe that polls writable takes a page, which is more than
 * a line, as long as nobody else of this process writes in between.
 */
static bool
stderr_has_room(void)
{
	struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};

	return fault("log-blocks") ||
	       (poll(&room, 1, 0) == 1 && (room.revents & POLLOUT));
}

static void
log_write(int level, const char *event, uint64_t n_suppressed, const char *format,
    va_list args)
{
	char text[LINE_BYTES], line[LINE_BYTES + 192];
	size_t used;

	vsnprintf(text, sizeof(text), format, args);
	used = (size_t)snprintf(line, 64, "<%d>%s: ", level, event);
	used += log_escape(line + used, LINE_BYTES, text);
	used += log_count(line + used, n_suppressed, "more like this");
	pthread_mutex_lock(&write_lock);
	if (stderr_has_room()) {
		used += log_count(line + used, n_lost, "lines lost before this");
		line[used++] = '\n';
		/* A log that can't be written has nowhere to say so but later. */
		n_lost = write(STDERR_FILENO, line, used) < 0 ? n_lost + 1 : 0;
	} else {
		n_lost++;
	}
	pthread_mutex_unlock(&write_lock);
}

void
log_event(int level, const char *event, const char *format, ...)
{
	va_list args;

	if (!log_wanted(level))
		return;
	va_start(args, format);
	log_write(level, event, 0, format, args);
	va_end(args);
}

static struct log_limit *
log_limit_of(const char *event)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	while (*event)
		hash = (hash ^ (uint8_t)*event++) * 16777619u;
	return &log_limits[hash % LIMIT_SLOTS];
}

/* True if a line of this event may pass now. */
static bool
log_limit_pass(struct log_limit *limit)
{
	struct timespec ts;
	uint64_t now_ms, last_ms, interval_ms;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	/* From 1 on: 0 means never. */
	now_ms = (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000 + 1;
	last_ms = atomic_load(&limit->passed_ms);
	interval_ms = atomic_load(&limit->interval_ms);
	if ((last_ms && now_ms < last_ms + interval_ms) ||
	    !atomic_compare_exchange_strong(&limit->passed_ms, &last_ms, now_ms))
		return false;
	if (!last_ms || now_ms > last_ms + 2 * interval_ms)
		interval_ms = LIMIT_FIRST_MS;
	else if (interval_ms < LIMIT_LAST_MS)
		interval_ms *= 2;
	atomic_store(&limit->interval_ms, interval_ms);
	return true;
}

void
log_event_limited(int level, const char *event, const char *format, ...)
{
	struct log_limit *limit = log_limit_of(event);
	va_list args;

	if (!log_wanted(level))
		return;
	if (!log_limit_pass(limit)) {
		atomic_fetch_add(&limit->n_suppressed, 1);
		return;
	}
	va_start(args, format);
	log_write(level, event, atomic_exchange(&limit->n_suppressed, 0), format, args);
	va_end(args);
}
