/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers: other people's libraries, each in a program of its own that measures itself
 * when it is asked to, so that every round holds both sides. tests/bench/peers/README.md
 * has the protocol. A peer is measured only after it has answered a key of ours with a
 * ciphertext that opens to the same secret: what does another thing is no peer.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "kem/kem.h"

#define LINE_MAX_BYTES (2 * (KEM_CT_MAX + KEM_SHARED_MAX) + 64)
#define START_MS       20000 /* an interpreter may have to start first */
#define PEER_OPS_MAX   64

struct peer {
	struct peer *next;
	char name[32], version[96];
	pid_t pid;
	int to, from;
	char line[LINE_MAX_BYTES];
	size_t n_line; /* bytes read that belong to no answer yet */
	char op[PEER_OPS_MAX][24], set[PEER_OPS_MAX][24];
	unsigned n_ops;
};

static int
peer_fail(const struct peer *peer, const char *why)
{
	return tool_fail("peer %s is left out: %s", peer->name, why);
}

/* The next line, without its newline; lives until the next call. */
static int
peer_read(struct peer *peer, int timeout_ms, char line[LINE_MAX_BYTES])
{
	struct pollfd ready = {.fd = peer->from, .events = POLLIN};
	ssize_t n;

	for (;;) {
		char *end = memchr(peer->line, '\n', peer->n_line);

		if (end) {
			size_t len = (size_t)(end - peer->line);

			memcpy(line, peer->line, len);
			line[len] = '\0';
			peer->n_line -= len + 1;
			memmove(peer->line, end + 1, peer->n_line);
			return 0;
		}
		if (peer->n_line == sizeof peer->line)
			return peer_fail(peer, "its answer is too long");
		if (poll(&ready, 1, timeout_ms) != 1)
			return peer_fail(peer, "it does not answer");
		n = read(peer->from, peer->line + peer->n_line,
		    sizeof peer->line - peer->n_line);
		if (n <= 0)
			return peer_fail(peer, "it has ended");
		peer->n_line += (size_t)n;
	}
}

static int
peer_write(struct peer *peer, const char *text)
{
	size_t len = strlen(text);
	ssize_t n;

	while (len > 0) {
		n = write(peer->to, text, len);
		if (n <= 0)
			return peer_fail(peer, "it has ended");
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Ask, and read the answer of one line, which begins with `word`. */
static int
peer_ask(struct peer *peer, const char *question, int timeout_ms, const char *word,
    char line[LINE_MAX_BYTES])
{
	size_t len = strlen(word);

	if (peer_write(peer, question) < 0 || peer_read(peer, timeout_ms, line) < 0)
		return -1;
	if (strncmp(line, word, len) == 0 && line[len] == ' ')
		return 0;
	return peer_fail(peer, line);
}

/* "ns NANOSECONDS TICKS" */
static int
parse_measure(const char *line, struct measure *result)
{
	char *end;

	line += strlen("ns ");
	result->ns = strtod(line, &end);
	if (end == line || !(result->ns > 0))
		return -1;
	line = end;
	result->ticks = strtod(line, &end);
	return end == line ? -1 : 0;
}

int
peer_measure(struct peer *peer, const struct row *row,
    const struct bench_options *options, struct measure *hot, double *cold_ns)
{
	char question[96], line[LINE_MAX_BYTES];
	int timeout_ms = (int)options->duration_ms + START_MS;
	struct measure cold = {0};

	snprintf(question, sizeof question, "run %s %s %g\n", row->op, row->set,
	    options->duration_ms);
	if (peer_ask(peer, question, timeout_ms, "ns", line) < 0)
		return -1;
	if (parse_measure(line, hot) < 0)
		return peer_fail(peer, "its answer is no measurement");
	if (options->cold) {
		snprintf(
		    question, sizeof question, "cold %s %s 3\n", row->op, row->set);
		if (peer_ask(peer, question, timeout_ms, "ns", line) < 0)
			return -1;
		if (parse_measure(line, &cold) < 0)
			return peer_fail(peer, "its answer is no measurement");
	}
	*cold_ns = cold.ns;
	return 0;
}

static int
from_hex(const char *hex, size_t hex_len, uint8_t *out, size_t len)
{
	if (hex_len != 2 * len)
		return -1;
	for (size_t i = 0; i < len; i++) {
		char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'}, *end;

		out[i] = (uint8_t)strtoul(digits, &end, 16);
		if (end != digits + 2)
			return -1;
	}
	return 0;
}

/* A share of ours, the peer's answer to it, and the secret that both must have. */
static int
exchange(struct peer *peer, const struct kem *kem, enum kem_alg alg, const char *set,
    struct kem_scratch *scratch)
{
	const struct kem_alg_info *info = kem_alg_info(alg);
	uint8_t share[KEM_SHARE_MAX], secret[KEM_SECRET_MAX], ct[KEM_CT_MAX];
	uint8_t told[KEM_SHARED_MAX];
	char question[2 * KEM_SHARE_MAX + 64], line[LINE_MAX_BYTES], *hex, *space;
	struct kem_shared shared;
	struct kem_private key;
	struct kem_keygen_item keygen = {.share = share, .secret = secret};
	struct kem_decaps_item decaps = {.key = &key, .ct = ct, .shared = &shared};
	int n;

	if (kem_keygen(kem, alg, &keygen, 1, scratch) != 0)
		return tool_fail("no key for peer %s", peer->name);
	n = snprintf(question, sizeof question, "check %s ", set);
	for (unsigned i = 0; i < info->share_bytes; i++)
		n += snprintf(
		    question + n, sizeof question - (size_t)n, "%02x", share[i]);
	snprintf(question + n, sizeof question - (size_t)n, "\n");
	if (peer_ask(peer, question, START_MS, "ct", line) < 0)
		return -1;
	hex = line + 3;
	space = strchr(hex, ' ');
	if (!space || from_hex(hex, (size_t)(space - hex), ct, info->ct_bytes) < 0 ||
	    from_hex(space + 1, strlen(space + 1), told, info->shared_bytes) < 0)
		return peer_fail(peer, "its ciphertext is of another length");
	decaps.ct_len = info->ct_bytes;
	kem_private_from_parts(&key, alg, secret, share);
	if (kem_decaps(kem, alg, &decaps, 1, scratch) != 0 || decaps.status != KEM_OK ||
	    kem_compare(told, shared.bytes, info->shared_bytes) != 0)
		return peer_fail(peer, "it does not come to the same secret as we do");
	return 0;
}

static int
peer_check(struct bench *bench, struct peer *peer)
{
	static const struct {
		const char *op, *set, *name;
		enum kem_alg alg;
	} checks[] = {
	    {"encaps", "512", "512", KEM_ALG_MLKEM512},
	    {"encaps", "768", "768", KEM_ALG_MLKEM768},
	    {"encaps", "1024", "1024", KEM_ALG_MLKEM1024},
	    {"hybrid-server", "768", "x25519mlkem768", KEM_ALG_X25519MLKEM768},
	};
	struct kem_scratch *scratch = aligned_alloc(64, sizeof *scratch);
	int r = scratch ? 0 : tool_fail("no memory");

	for (size_t i = 0; r == 0 && i < sizeof checks / sizeof checks[0]; i++) {
		for (unsigned j = 0; r == 0 && j < peer->n_ops; j++) {
			if (strcmp(peer->op[j], checks[i].op) == 0 &&
			    strcmp(peer->set[j], checks[i].set) == 0)
				r = exchange(peer, bench->kems[0], checks[i].alg,
				    checks[i].name, scratch);
		}
	}
	free(scratch);
	return r;
}

/* "peer NAME VERSION", "op OP SET" ..., "ready" */
static int
peer_greet(struct peer *peer)
{
	char line[LINE_MAX_BYTES];
	char name[32];

	if (peer_read(peer, START_MS, line) < 0)
		return -1;
	if (sscanf(line, "peer %31s %95[^\n]", name, peer->version) != 2)
		return peer_fail(peer, line);
	memcpy(peer->name, name, sizeof name);
	for (;;) {
		if (peer_read(peer, START_MS, line) < 0)
			return -1;
		if (strcmp(line, "ready") == 0)
			return 0;
		if (peer->n_ops == PEER_OPS_MAX ||
		    sscanf(line, "op %23s %23s", peer->op[peer->n_ops],
			peer->set[peer->n_ops]) != 2)
			return peer_fail(peer, line);
		peer->n_ops++;
	}
}

static int
peer_spawn(struct peer *peer, char *path)
{
	char *const argv[] = {path, NULL};
	posix_spawn_file_actions_t actions;
	int in[2], out[2], r;

	if (pipe2(in, 0) < 0 || pipe2(out, 0) < 0)
		return peer_fail(peer, strerror(errno));
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
	posix_spawn_file_actions_addclose(&actions, in[0]);
	posix_spawn_file_actions_addclose(&actions, in[1]);
	posix_spawn_file_actions_addclose(&actions, out[0]);
	posix_spawn_file_actions_addclose(&actions, out[1]);
	r = posix_spawn(&peer->pid, path, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(in[0]);
	close(out[1]);
	peer->to = in[1];
	peer->from = out[0];
	if (r != 0) {
		peer->pid = 0;
		return peer_fail(peer, strerror(r));
	}
	return 0;
}

/* End of input is how a peer is told to end; one that doesn't is ended. */
void
peer_close(struct peer *peer)
{
	struct pollfd ended = {.fd = peer->from};

	close(peer->to);
	if (peer->pid > 0) {
		if (poll(&ended, 1, 1000) != 1)
			kill(peer->pid, SIGKILL);
		waitpid(peer->pid, NULL, 0);
	}
	close(peer->from);
	free(peer);
}

static int
peer_add_rows(struct bench *bench, struct peer *peer)
{
	for (unsigned i = 0; i < peer->n_ops; i++) {
		struct row row = {
		    .op = peer->op[i],
		    .set = peer->set[i],
		    .backend = peer->name,
		    .batch = 1,
		    .n_permutations = permutations(peer->op[i], peer->set[i]),
		    .peer = peer,
		};

		if (bench_add(bench, &row) < 0)
			return -1;
	}
	return 0;
}

struct peer *
peer_open(struct bench *bench, char *path)
{
	const char *file = strrchr(path, '/');
	struct peer *peer = calloc(1, sizeof *peer);

	if (!peer) {
		tool_fail("no memory");
		return NULL;
	}
	/* A peer that has ended is told by write(). */
	signal(SIGPIPE, SIG_IGN);
	file = file ? file + 1 : path;
	if (strncmp(file, "peer-", strlen("peer-")) == 0)
		file += strlen("peer-");
	snprintf(peer->name, sizeof peer->name, "%.31s", file);
	if (peer_spawn(peer, path) < 0 || peer_greet(peer) < 0 ||
	    peer_check(bench, peer) < 0) {
		peer_close(peer);
		return NULL;
	}
	return peer;
}

const char *
peer_name(const struct peer *peer)
{
	return peer->name;
}

/* One program of the directory. A peer that fails is told and left out: 0. */
static int
add_peer(struct bench *bench, const char *file)
{
	char path[4096];
	struct peer *peer;

	snprintf(path, sizeof path, "%s/%s", bench->options.peer_dir, file);
	peer = peer_open(bench, path);
	if (!peer)
		return 0;
	if (!bench->options.json)
		printf("peer %s: %s\n", peer->name, peer->version);
	peer->next = bench->peers;
	bench->peers = peer;
	return peer_add_rows(bench, peer);
}

/* build.sh leaves the reason why it could not build a peer in peer-NAME.skipped. */
static void
tell_skipped(const struct bench *bench, const char *file)
{
	char path[4096], reason[200];
	FILE *in;

	snprintf(path, sizeof path, "%s/%s", bench->options.peer_dir, file);
	in = fopen(path, "r");
	if (!in)
		return;
	if (fgets(reason, sizeof reason, in)) {
		reason[strcspn(reason, "\n")] = '\0';
		tool_fail("peer %.*s is skipped: %s",
		    (int)(strlen(file) - strlen("peer-") - strlen(".skipped")),
		    file + strlen("peer-"), reason);
	}
	fclose(in);
}

static int
is_peer(const struct dirent *entry)
{
	return strncmp(entry->d_name, "peer-", strlen("peer-")) == 0;
}

int
bench_add_peers(struct bench *bench)
{
	const char *dir = bench->options.peer_dir;
	struct dirent **entries;
	int n, r = 0;

	n = scandir(dir, &entries, is_peer, alphasort);
	if (n < 0)
		return tool_fail("%s: %s (tests/bench/peers/build.sh makes the peers)",
		    dir, strerror(errno));
	if (n == 0)
		r = tool_fail("%s: no peer-NAME in it", dir);
	for (int i = 0; i < n; i++) {
		const char *file = entries[i]->d_name;
		const char *dot = strrchr(file, '.');

		if (r == 0 && dot && strcmp(dot, ".skipped") == 0)
			tell_skipped(bench, file);
		else if (r == 0)
			r = add_peer(bench, file);
		free(entries[i]);
	}
	free(entries);
	return r;
}

void
bench_fini_peers(struct bench *bench)
{
	for (struct peer *peer = bench->peers, *next; peer; peer = next) {
		next = peer->next;
		peer_close(peer);
	}
	bench->peers = NULL;
}
