/* SPDX-License-Identifier: Apache-2.0 */
#include "stats.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "control.h"

int
stats_read(const struct ctl *ctl, struct stats *stats)
{
	Mlkemd__V1__Request request = MLKEMD__V1__REQUEST__INIT;
	Mlkemd__V1__Stats ask = MLKEMD__V1__STATS__INIT;
	Mlkemd__V1__Response *response = NULL;
	int status;

	stats->n = 0;
	stats->pid = 0;
	request.op_case = MLKEMD__V1__REQUEST__OP_STATS;
	request.stats = &ask;
	status = control_call(ctl, &request, &response, &stats->pid);
	if (status)
		return status;
	if (response->result_case == MLKEMD__V1__RESPONSE__RESULT_STATS) {
		for (size_t i = 0;
		     i < response->stats->n_counters && stats->n < STATS_COUNTERS_MAX;
		     i++) {
			const Mlkemd__V1__Counter *counter =
			    response->stats->counters[i];
			struct stats_counter *to = &stats->counters[stats->n++];

			snprintf(to->name, sizeof(to->name), "%s", counter->name);
			to->value = counter->value;
		}
	}
	mlkemd__v1__response__free_unpacked(response, NULL);
	return CTL_OK;
}

int
stats_try(const struct ctl *ctl, struct stats *stats)
{
	struct ctl optional = *ctl;

	optional.left_out = "counters";
	return stats_read(&optional, stats);
}

uint64_t
stats_value(const struct stats *stats, const char *name)
{
	for (size_t i = 0; i < stats->n; i++) {
		if (strcmp(stats->counters[i].name, name) == 0)
			return stats->counters[i].value;
	}
	return 0;
}

uint64_t
stats_grown(const struct stats *before, const struct stats *after, const char *name)
{
	return stats_value(after, name) - stats_value(before, name);
}

uint64_t
stats_cpu_ns(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (pid <= 0 || clock_getcpuclockid(pid, &clock) != 0 ||
	    clock_gettime(clock, &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}
