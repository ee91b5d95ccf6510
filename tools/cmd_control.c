/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_control.c: stats, reload, drain, resume, selftest: what an administrator asks of
 * the daemon over its control socket.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "json.h"
#include "kem/kem.h"

static uint64_t
counter(const Mlkemd__V1__StatsResult *stats, const char *name)
{
	for (size_t i = 0; i < stats->n_counters; i++) {
		if (strcmp(stats->counters[i]->name, name) == 0)
			return stats->counters[i]->value;
	}
	return 0;
}

/* Items in a kernel group, which is what a batch is: 1 to 8. */
static double
mean_batch(const Mlkemd__V1__StatsResult *stats)
{
	uint64_t groups = counter(stats, "groups_total");

	return groups ? (double)counter(stats, "group_items_total") / (double)groups
		      : 0;
}

int
ctl_stats(struct ctl *ctl)
{
	Mlkemd__V1__Request request = MLKEMD__V1__REQUEST__INIT;
	Mlkemd__V1__Stats stats = MLKEMD__V1__STATS__INIT;
	Mlkemd__V1__Response *response = NULL;
	const Mlkemd__V1__StatsResult *result;
	struct json json;
	int status;

	request.op_case = MLKEMD__V1__REQUEST__OP_STATS;
	request.stats = &stats;
	status = control_call(ctl, &request, &response, NULL);
	if (status)
		return status;
	result = response->result_case == MLKEMD__V1__RESPONSE__RESULT_STATS
		     ? response->stats
		     : NULL;
	if (!result) {
		status = ctl_fail(ctl, CTL_FAILED, "the answer holds no counters");
		goto out;
	}
	if (ctl->json) {
		json_begin(&json, stdout);
		json_flag(&json, "ok", true);
		for (size_t i = 0; i < result->n_counters; i++)
			json_number(&json, result->counters[i]->name,
			    result->counters[i]->value);
		json_fixed(&json, "mean_batch", mean_batch(result));
		json_end(&json);
	} else {
		for (size_t i = 0; i < result->n_counters; i++)
			printf("%-28s %" PRIu64 "\n", result->counters[i]->name,
			    result->counters[i]->value);
		printf("%-28s %.2f\n", "mean_batch", mean_batch(result));
	}
out:
	mlkemd__v1__response__free_unpacked(response, NULL);
	return status;
}

/* A request without a result: done is all that there is to say. */
static int
command(struct ctl *ctl, Mlkemd__V1__Request *request, const char *done)
{
	Mlkemd__V1__Response *response = NULL;
	struct json json;
	int status = control_call(ctl, request, &response, NULL);

	if (status)
		return status;
	if (ctl->json) {
		json_begin(&json, stdout);
		json_flag(&json, "ok", true);
		json_string(&json, "done", ctl->command);
		json_end(&json);
	} else {
		printf("%s\n", done);
	}
	mlkemd__v1__response__free_unpacked(response, NULL);
	return CTL_OK;
}

int
ctl_reload(struct ctl *ctl)
{
	Mlkemd__V1__Request request = MLKEMD__V1__REQUEST__INIT;
	Mlkemd__V1__Reload reload = MLKEMD__V1__RELOAD__INIT;

	request.op_case = MLKEMD__V1__REQUEST__OP_RELOAD;
	request.reload = &reload;
	return command(ctl, &request, "configuration read again and in force");
}

int
ctl_drain(struct ctl *ctl)
{
	Mlkemd__V1__Request request = MLKEMD__V1__REQUEST__INIT;
	Mlkemd__V1__Drain drain = MLKEMD__V1__DRAIN__INIT;

	request.op_case = MLKEMD__V1__REQUEST__OP_DRAIN;
	request.drain = &drain;
	return command(ctl, &request,
	    "draining: no new operations; keys already given out still decapsulate "
	    "(mlkemctl resume ends it)");
}

int
ctl_resume(struct ctl *ctl)
{
	Mlkemd__V1__Request request = MLKEMD__V1__REQUEST__INIT;
	Mlkemd__V1__Resume resume = MLKEMD__V1__RESUME__INIT;

	request.op_case = MLKEMD__V1__REQUEST__OP_RESUME;
	request.resume = &resume;
	return command(ctl, &request, "serving again");
}

static int
show_selftest(const struct ctl *ctl, bool passed, const char *backend, const char *step)
{
	struct json json;

	if (!passed)
		return ctl_fail(ctl, CTL_FAILED,
		    "self-test failed at step %s of backend %s: do not use it", step,
		    backend);
	if (ctl->json) {
		json_begin(&json, stdout);
		json_flag(&json, "ok", true);
		json_flag(&json, "passed", true);
		json_string(&json, "backend", backend);
		json_end(&json);
	} else {
		printf("self-test passed: backend %s%s\n", backend,
		    ctl->local ? ", in this process" : "");
	}
	return CTL_OK;
}

static int
selftest_local(const struct ctl *ctl)
{
	struct kem_scratch *scratch = aligned_alloc(64, sizeof(*scratch));
	const char *step = "start";
	struct kem *kem = NULL;
	int fail, status;

	if (!scratch)
		return ctl_fail(ctl, CTL_FAILED, "out of memory");
	fail = kem_open(&kem, NULL);
	if (fail) {
		status = ctl_fail(ctl, CTL_FAILED, "%s", kem_strerror(fail));
		goto out;
	}
	fail = kem_selftest(kem, scratch, &step);
	status = show_selftest(ctl, fail == 0, kem_backend_name(kem), step);
out:
	kem_free(kem);
	free(scratch);
	return status;
}

int
ctl_selftest(struct ctl *ctl)
{
	Mlkemd__V1__Request request = MLKEMD__V1__REQUEST__INIT;
	Mlkemd__V1__SelfTest self_test = MLKEMD__V1__SELF_TEST__INIT;
	Mlkemd__V1__Response *response = NULL;
	int status;

	if (ctl->local)
		return selftest_local(ctl);
	request.op_case = MLKEMD__V1__REQUEST__OP_SELF_TEST;
	request.self_test = &self_test;
	status = control_call(ctl, &request, &response, NULL);
	if (status)
		return status;
	if (response->result_case != MLKEMD__V1__RESPONSE__RESULT_SELF_TEST)
		status = ctl_fail(ctl, CTL_FAILED, "the answer holds no result");
	else
		status = show_selftest(ctl, response->self_test->passed,
		    response->self_test->backend, response->self_test->failed_step);
	mlkemd__v1__response__free_unpacked(response, NULL);
	return status;
}
