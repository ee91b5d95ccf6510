/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memscan PID: looks for patterns in the memory of a process. Patterns come on stdin,
 * one hex string of PATTERN_BYTES a line. Each hit is printed as "LINE ADDRESS MAPPING";
 * the last line is "scanned BYTES unreadable BYTES". Every byte offset is looked at:
 * a secret needs not be aligned. Pages of memfd_secret cannot be read by anybody, so
 * the process has to run without it.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATTERN_BYTES 16
#define TABLE_BITS    20
#define TABLE_SIZE    (1u << TABLE_BITS)
#define CHUNK_BYTES   (1u << 20)

struct pattern {
	uint8_t bytes[PATTERN_BYTES];
	uint32_t line, next; /* next: index + 1 in its chain */
};

static struct pattern *patterns;
static uint32_t n_patterns, *table;

static uint32_t
slot_of(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return (uint32_t)((word * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - TABLE_BITS));
}

static bool
pattern_parse(struct pattern *p, const char *text)
{
	for (int i = 0; i < PATTERN_BYTES; i++) {
		char pair[3] = {
		    text[2 * i], text[2 * i] ? text[2 * i + 1] : '\0', '\0'};
		char *end;

		p->bytes[i] = (uint8_t)strtoul(pair, &end, 16);
		if (end != pair + 2)
			return false;
	}
	return true;
}

static void
patterns_read(void)
{
	char text[2 * PATTERN_BYTES + 16];
	uint32_t room = 0, line = 0;

	table = calloc(TABLE_SIZE, sizeof(*table));
	while (table && fgets(text, sizeof(text), stdin)) {
		if (n_patterns == room) {
			room = room ? 2 * room : 4096;
			patterns = realloc(patterns, room * sizeof(*patterns));
			if (!patterns)
				exit(2);
		}
		struct pattern *p = &patterns[n_patterns];
		if (!pattern_parse(p, text)) {
			fprintf(stderr, "line %u is not a pattern\n", line);
			exit(2);
		}
		p->line = line++;
		p->next = table[slot_of(p->bytes)];
		table[slot_of(p->bytes)] = ++n_patterns;
	}
}

static void
chunk_scan(const uint8_t *data, size_t len, uint64_t address, const char *name)
{
	for (size_t i = 0; i + PATTERN_BYTES <= len; i++) {
		uint32_t at = table[slot_of(data + i)];

		for (; at; at = patterns[at - 1].next) {
			const struct pattern *p = &patterns[at - 1];

			if (!memcmp(p->bytes, data + i, PATTERN_BYTES))
				printf(
				    "%u %" PRIx64 " %s\n", p->line, address + i, name);
		}
	}
}

/* Chunks overlap, so that no pattern falls between two. Returns bytes not readable. */
static uint64_t
mapping_scan(int mem, uint64_t start, uint64_t end, const char *name, uint8_t *buf)
{
	uint64_t unreadable = 0, at = start;

	while (at < end) {
		uint64_t want = end - at < CHUNK_BYTES ? end - at : CHUNK_BYTES;
		ssize_t got = pread(mem, buf, want, (off_t)at);

		if (got <= 0) {
			uint64_t page = 4096 - at % 4096;

			unreadable += page;
			at += page;
			continue;
		}
		chunk_scan(buf, (size_t)got, at, name);
		if (at + (uint64_t)got >= end)
			break;
		at += got > PATTERN_BYTES ? (uint64_t)got - PATTERN_BYTES + 1 : 1;
		if ((uint64_t)got < want) /* a hole behind: go on at its page */
			at = (at + PATTERN_BYTES + 4095) / 4096 * 4096;
	}
	return unreadable;
}

int
main(int argc, char **argv)
{
	char path[64], line[4096];
	uint64_t scanned = 0, unreadable = 0;
	static uint8_t buf[CHUNK_BYTES];

	if (argc != 2)
		return 2;
	patterns_read();
	snprintf(path, sizeof(path), "/proc/%s/maps", argv[1]);
	FILE *maps = fopen(path, "re");
	snprintf(path, sizeof(path), "/proc/%s/mem", argv[1]);
	int mem = open(path, O_RDONLY | O_CLOEXEC);
	if (!maps || mem < 0 || !n_patterns) {
		perror(path);
		return 2;
	}
	while (fgets(line, sizeof(line), maps)) {
		char mode[8], name[4096] = "anonymous", *rest;
		/* "start-end mode offset device inode name" */
		uint64_t start = strtoull(line, &rest, 16);

		if (*rest != '-')
			return 2;
		uint64_t end = strtoull(rest + 1, &rest, 16);
		if (sscanf(rest, " %7s %*s %*s %*s %4095s", mode, name) < 1)
			return 2;
		if (mode[0] != 'r' || !strncmp(name, "[v", 2))
			continue;
		scanned += end - start;
		unreadable += mapping_scan(mem, start, end, name, buf);
	}
	printf("scanned %" PRIu64 " unreadable %" PRIu64 "\n", scanned, unreadable);
	return 0;
}
