/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "bench_message.h"

#define EVENTS_MAX   64
#define HANDLES_MAX  (BENCH_IN_FLIGHT_MAX * MLKEMCLIENT_MAX_ITEMS)
#define SLEEP_MIN_NS 2000000u /* epoll's clock counts milliseconds */

/* One request in flight. Its id is (a count << 6) + its place. */
struct slot {
	bool open;
	enum bench_kind kind;
	uint64_t id, from_ns;
};

struct load_conn {
	int fd;
	bool writing;
	unsigned n_open, n_made; /* requests */
	uint64_t due_ns;         /* not before then; 0: now */
	struct slot slots[BENCH_IN_FLIGHT_MAX];
	struct bench_handle *handles; /* of keys that wait for decapsulation */
	unsigned n_handles;
	uint8_t *in, *out;
	size_t in_len, out_len, out_sent, in_size, out_size;
};

struct bench_load {
	struct ctl *ctl;
	struct bench_plan plan;
	struct bench_values values;
	struct bench_result *result; /* of the run under way */
	int epoll_fd;
	unsigned n_conns, next_conn;
	uint64_t end_ns;
	double next_due_ns; /* open loop */
	struct load_conn *conns;
};

static int
lost(const struct bench_load *load, const char *why)
{
	return ctl_fail(load->ctl, CTL_FAILED, "%s: %s", load->ctl->socket_path, why);
}

/* The most that a request or its answer takes. */
static size_t
frame_bytes(const struct bench_plan *plan, const struct mlkemclient_sizes *sizes)
{
	return plan->items * (2 * sizes->share + sizes->ciphertext + 256) + 512;
}

/* Frames are made whole into room that is kept for all requests in flight. */
static bool
conn_buffers(struct load_conn *conn, const struct bench_plan *plan,
    const struct mlkemclient_sizes *sizes)
{
	conn->out_size = conn->in_size =
	    plan->in_flight * frame_bytes(plan, sizes) + 4096;
	conn->in = malloc(conn->in_size);
	conn->out = malloc(conn->out_size);
	conn->handles = calloc(HANDLES_MAX, sizeof(conn->handles[0]));
	return conn->in && conn->out && conn->handles;
}

static int
conn_open(struct bench_load *load, struct load_conn *conn)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = conn};
	size_t len = strlen(load->ctl->socket_path);

	if (len >= sizeof(addr.sun_path))
		return ctl_fail(load->ctl, CTL_USAGE,
		    "--socket is %zu bytes long; a socket's path has at most %zu", len,
		    sizeof(addr.sun_path) - 1);
	memcpy(addr.sun_path, load->ctl->socket_path, len + 1);
	if (!conn_buffers(conn, &load->plan, &load->values.sizes))
		return ctl_fail(load->ctl, CTL_FAILED, "out of memory");
	conn->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (conn->fd < 0)
		return ctl_fail(load->ctl, CTL_FAILED, "socket: %s", strerror(errno));
	if (connect(conn->fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return ctl_fail(load->ctl, CTL_UNREACHABLE,
		    "socket %s: %s; is mlkemd running there? (--socket names another)",
		    load->ctl->socket_path, strerror(errno));
	if (epoll_ctl(load->epoll_fd, EPOLL_CTL_ADD, conn->fd, &event) < 0)
		return ctl_fail(load->ctl, CTL_FAILED, "epoll: %s", strerror(errno));
	return CTL_OK;
}

static int
conn_want_write(struct bench_load *load, struct load_conn *conn, bool writing)
{
	struct epoll_event event = {
	    .events = EPOLLIN | (writing ? EPOLLOUT : 0), .data.ptr = conn};

	if (conn->writing == writing)
		return CTL_OK;
	conn->writing = writing;
	return epoll_ctl(load->epoll_fd, EPOLL_CTL_MOD, conn->fd, &event) < 0
		   ? lost(load, strerror(errno))
		   : CTL_OK;
}

static int
conn_send(struct bench_load *load, struct load_conn *conn)
{
	while (conn->out_sent < conn->out_len) {
		ssize_t n = send(conn->fd, conn->out + conn->out_sent,
		    conn->out_len - conn->out_sent, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return conn_want_write(load, conn, true);
		if (n < 0)
			return lost(load, strerror(errno));
		conn->out_sent += (size_t)n;
	}
	conn->out_sent = conn->out_len = 0;
	return conn_want_write(load, conn, false);
}

static enum bench_kind
conn_next_kind(const struct bench_load *load, const struct load_conn *conn)
{
	bool client = load->plan.op == BENCH_CLIENT ||
		      (load->plan.op == BENCH_MIX && conn->n_made % 2);

	if (!client)
		return BENCH_DO_ENCAPS;
	return conn->n_handles >= load->plan.items ? BENCH_DO_DECAPS : BENCH_DO_KEYGEN;
}

/* What is not sent yet is of requests in flight: moved to the front it leaves room. */
static void
conn_make_room(const struct bench_load *load, struct load_conn *conn)
{
	size_t need = frame_bytes(&load->plan, &load->values.sizes);

	if (conn->out_size - conn->out_len >= need)
		return;
	conn->out_len -= conn->out_sent;
	memmove(conn->out, conn->out + conn->out_sent, conn->out_len);
	conn->out_sent = 0;
}

/* Writes the next request behind what is to be sent. from_ns: when it was due. */
static void
conn_make(struct bench_load *load, struct load_conn *conn, uint64_t from_ns)
{
	enum bench_kind kind = conn_next_kind(load, conn);
	unsigned place = 0, n = load->plan.items;

	while (conn->slots[place].open)
		place++;
	conn_make_room(load, conn);
	if (kind == BENCH_DO_DECAPS)
		conn->n_handles -= n;
	conn->slots[place] = (struct slot){.open = true,
	    .kind = kind,
	    .id = ((uint64_t)++conn->n_made << 6) + place,
	    .from_ns = from_ns};
	conn->n_open++;
	conn->out_len += bench_frame_put(conn->out + conn->out_len, &load->values, kind,
	    conn->slots[place].id, n, conn->handles + conn->n_handles);
}

static void
conn_note(struct bench_load *load, struct load_conn *conn, struct slot *slot,
    const struct bench_answer *answer, uint64_t now_ns)
{
	struct bench_result *result = load->result;

	slot->open = false;
	conn->n_open--;
	result->n_items += answer->n_good;
	result->n_failed += answer->n_bad;
	if (answer->n_bad && !result->first_failure[0])
		memcpy(result->first_failure, answer->failure,
		    sizeof(result->first_failure));
	if (!answer->n_bad) {
		result->n_requests++;
		bench_times_add(&result->times, now_ns - slot->from_ns);
	}
	if (slot->kind == BENCH_DO_KEYGEN &&
	    conn->n_handles + answer->n_good <= HANDLES_MAX) {
		memcpy(conn->handles + conn->n_handles, answer->handles,
		    answer->n_good * sizeof(answer->handles[0]));
		conn->n_handles += answer->n_good;
	}
	if (load->plan.idle_us)
		conn->due_ns = now_ns + load->plan.idle_us * 1000ull;
}

/* All whole frames at the front of the input. */
static int
conn_take(struct bench_load *load, struct load_conn *conn)
{
	uint64_t now_ns = ctl_now_ns();
	size_t at = 0;

	while (conn->in_len - at >= WIRE_HEADER_BYTES) {
		static struct bench_answer answer;
		size_t len = wire_get_length(conn->in + at);
		struct slot *slot;

		if (!wire_length_ok((uint32_t)len) ||
		    len > conn->in_size - WIRE_HEADER_BYTES)
			return lost(load, "what answers does not speak this protocol");
		if (conn->in_len - at - WIRE_HEADER_BYTES < len)
			break;
		if (bench_answer_read(conn->in + at + WIRE_HEADER_BYTES, len,
			load->plan.items, &answer) < 0)
			return lost(load, "what answers does not speak this protocol");
		slot = &conn->slots[answer.id % BENCH_IN_FLIGHT_MAX];
		if (!slot->open || slot->id != answer.id)
			return lost(load, "an answer to a request that was not made");
		conn_note(load, conn, slot, &answer, now_ns);
		at += WIRE_HEADER_BYTES + len;
	}
	conn->in_len -= at;
	memmove(conn->in, conn->in + at, conn->in_len);
	return CTL_OK;
}

static int
conn_receive(struct bench_load *load, struct load_conn *conn)
{
	ssize_t n = recv(conn->fd, conn->in + conn->in_len,
	    conn->in_size - conn->in_len, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return CTL_OK;
	if (n <= 0)
		return lost(load, n ? strerror(errno) : "closed by the daemon");
	conn->in_len += (size_t)n;
	return conn_take(load, conn);
}

/* A closed loop: as many as are allowed; an open one: see load_issue(). */
static int
conn_refill(struct bench_load *load, struct load_conn *conn, uint64_t now_ns)
{
	if (load->plan.rate > 0 || now_ns >= load->end_ns || conn->due_ns > now_ns)
		return CTL_OK;
	while (conn->n_open < load->plan.in_flight)
		conn_make(load, conn, now_ns);
	return conn_send(load, conn);
}

/* Requests of the open loop that are due, each on the next connection with room. */
static int
load_issue(struct bench_load *load, uint64_t now_ns)
{
	int status = CTL_OK;

	while (!status && load->next_due_ns <= (double)now_ns &&
	       load->next_due_ns < (double)load->end_ns) {
		struct load_conn *conn = NULL;

		for (unsigned i = 0; i < load->n_conns; i++) {
			conn = &load->conns[load->next_conn++ % load->n_conns];
			if (conn->n_open < load->plan.in_flight)
				break;
			conn = NULL;
		}
		if (!conn)
			break; /* it stays due, and its time runs */
		conn_make(load, conn, (uint64_t)load->next_due_ns);
		load->next_due_ns += 1e9 / load->plan.rate;
		status = conn_send(load, conn);
	}
	return status;
}

/* Connections whose pause is over. *nextp: when the next one's is. */
static int
load_resume(struct bench_load *load, uint64_t now_ns, uint64_t *nextp)
{
	int status = CTL_OK;

	*nextp = load->end_ns;
	for (unsigned i = 0; i < load->n_conns && !status; i++) {
		struct load_conn *conn = &load->conns[i];

		if (!conn->due_ns)
			continue;
		if (conn->due_ns <= now_ns) {
			conn->due_ns = 0;
			status = conn_refill(load, conn, now_ns);
		} else if (conn->due_ns < *nextp) {
			*nextp = conn->due_ns;
		}
	}
	return status;
}

static unsigned
load_n_open(const struct bench_load *load)
{
	unsigned n = 0;

	for (unsigned i = 0; i < load->n_conns; i++)
		n += load->conns[i].n_open;
	return n;
}

/* Looks before it sleeps; sleeps no longer than until next_ns. */
static int
load_wait(
    struct bench_load *load, struct epoll_event events[EVENTS_MAX], uint64_t next_ns)
{
	uint64_t now_ns = ctl_now_ns(),
		 until_ns = now_ns + load->plan.spin_us * 1000ull;
	int n, timeout_ms = 0;

	do {
		n = epoll_wait(load->epoll_fd, events, EVENTS_MAX, 0);
		now_ns = ctl_now_ns();
	} while (n == 0 && now_ns < until_ns && now_ns < next_ns);
	if (n == 0 && now_ns + SLEEP_MIN_NS < next_ns)
		timeout_ms = (int)((next_ns - now_ns - SLEEP_MIN_NS / 2) / 1000000);
	if (n == 0 && timeout_ms)
		n = epoll_wait(load->epoll_fd, events, EVENTS_MAX, timeout_ms);
	return n < 0 && errno == EINTR ? 0 : n;
}

static int
load_serve(struct bench_load *load, const struct epoll_event *event)
{
	struct load_conn *conn = event->data.ptr;
	int status = CTL_OK;

	if (event->events & EPOLLOUT)
		status = conn_send(load, conn);
	if (!status && (event->events & ~(uint32_t)EPOLLOUT))
		status = conn_receive(load, conn);
	if (!status)
		status = conn_refill(load, conn, ctl_now_ns());
	return status;
}

static int
load_loop(struct bench_load *load)
{
	uint64_t give_up_ns = load->end_ns + load->ctl->timeout_ms * 1000000ull;
	int status = CTL_OK;

	for (;;) {
		struct epoll_event events[EVENTS_MAX];
		uint64_t now_ns = ctl_now_ns(), next_ns = load->end_ns;
		int n;

		if (load->plan.idle_us)
			status = load_resume(load, now_ns, &next_ns);
		if (!status && load->plan.rate > 0) {
			status = load_issue(load, now_ns);
			if (load->next_due_ns < (double)next_ns)
				next_ns = (uint64_t)load->next_due_ns;
		}
		if (status || (now_ns >= load->end_ns && !load_n_open(load)))
			return status;
		if (now_ns >= give_up_ns)
			return ctl_fail(load->ctl, CTL_BUSY,
			    "%u requests have no answer after %u ms (--timeout-ms)",
			    load_n_open(load), load->ctl->timeout_ms);
		n = load_wait(
		    load, events, now_ns < load->end_ns ? next_ns : give_up_ns);
		for (int i = 0; i < n && !status; i++)
			status = load_serve(load, &events[i]);
		if (status)
			return status;
	}
}

/* Hello on each connection; a refusal is an answer here. */
static int
load_greet(struct bench_load *load)
{
	struct bench_result result = {0};

	load->result = &result;
	load->end_ns = 0;
	for (unsigned i = 0; i < load->n_conns; i++) {
		struct load_conn *conn = &load->conns[i];
		int status;

		conn->slots[0] =
		    (struct slot){.open = true, .id = 64, .from_ns = ctl_now_ns()};
		conn->n_open = conn->n_made = 1;
		conn->out_len =
		    bench_frame_put(conn->out, &load->values, BENCH_HELLO, 64, 1, NULL);
		status = conn_send(load, conn);
		if (status)
			return status;
	}
	load->end_ns = ctl_now_ns();
	load->next_due_ns = (double)load->end_ns; /* no request yet */
	if (load_loop(load))
		return CTL_FAILED;
	if (result.n_failed)
		return ctl_fail(load->ctl, CTL_DENIED, "Hello is refused: %s",
		    result.first_failure);
	return CTL_OK;
}

int
bench_load_open(
    struct ctl *ctl, const struct bench_plan *plan, struct bench_load **loadp)
{
	struct bench_load *load = calloc(1, sizeof(*load));
	int status = CTL_OK, error;

	*loadp = load;
	if (!load)
		return ctl_fail(ctl, CTL_FAILED, "out of memory");
	load->ctl = ctl;
	load->plan = *plan;
	load->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	load->conns = calloc(plan->connections, sizeof(load->conns[0]));
	if (load->epoll_fd < 0 || !load->conns)
		return ctl_fail(ctl, CTL_FAILED, "out of memory");
	for (unsigned i = 0; i < plan->connections; i++)
		load->conns[i].fd = -1;
	load->n_conns = plan->connections;
	error = bench_values_make(&load->values, ctl->alg);
	if (error)
		return ctl_fail(
		    ctl, CTL_FAILED, "a share: %s", mlkemclient_strerror(error));
	for (unsigned i = 0; i < plan->connections && !status; i++)
		status = conn_open(load, &load->conns[i]);
	return status ? status : load_greet(load);
}

static uint64_t
own_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

int
bench_load_run(
    struct bench_load *load, uint64_t duration_ns, struct bench_result *result)
{
	uint64_t start_ns = ctl_now_ns(), cpu_ns = own_cpu_ns();
	int status = CTL_OK;

	load->result = result;
	load->end_ns = start_ns + duration_ns;
	load->next_due_ns = (double)start_ns;
	for (unsigned i = 0; i < load->n_conns && !status; i++) {
		load->conns[i].due_ns = 0;
		status = conn_refill(load, &load->conns[i], ctl_now_ns());
	}
	if (!status)
		status = load_loop(load);
	result->wall_ns += ctl_now_ns() - start_ns;
	result->cpu_ns += own_cpu_ns() - cpu_ns;
	return status;
}

void
bench_load_close(struct bench_load *load)
{
	if (!load)
		return;
	for (unsigned i = 0; i < load->n_conns; i++) {
		struct load_conn *conn = &load->conns[i];

		if (conn->fd >= 0)
			close(conn->fd);
		free(conn->in);
		free(conn->out);
		free(conn->handles);
	}
	if (load->epoll_fd >= 0)
		close(load->epoll_fd);
	free(load->conns);
	free(load);
}
