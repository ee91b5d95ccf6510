/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planted_bugs KIND: one bug of each kind that a sanitizer of this build has to report.
 * See sanitizer_control.sh.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int shared;
static volatile int sink;

static void *
racer(void *unused)
{
	for (int i = 0; i < 100000; i++)
		shared++;
	return unused;
}

static void
race(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, racer, NULL))
		exit(2);
	racer(NULL);
	pthread_join(thread, NULL);
}

/* n is 8, but the compiler does not know. */
static void
overflow(int n)
{
	char *p = malloc((size_t)n);

	if (!p)
		exit(2);
	memset(p, 0, (size_t)n);
	sink = p[n];
	free(p);
}

static void
leak(int n)
{
	char *volatile p = malloc((size_t)n);

	sink = p != NULL;
	p = NULL;
	sink = p != NULL;
}

static void
shift(int n)
{
	sink = 1 << (n + 56);
}

int
main(int argc, char **argv)
{
	const char *kind = argc == 2 ? argv[1] : "";
	int n = argc * 4;

	if (!strcmp(kind, "race"))
		race();
	else if (!strcmp(kind, "overflow"))
		overflow(n);
	else if (!strcmp(kind, "leak"))
		leak(n);
	else if (!strcmp(kind, "shift"))
		shift(n);
	else
		return 2;
	return 0;
}
