/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_doctor.c: what keeps mlkemd from being reachable, safe or fast on this machine, and
 * what to type about it. It changes nothing.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "doctor.h"
#include "json.h"
#include "stats.h"

static const char *const words[FINDING_N] = {"good", "note", "warn", "BAD"};

void
doctor_say(struct doctor *doctor, enum finding finding, const char *what,
    const char *remedy, const char *format, ...)
{
	char text[512];
	struct json json;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	doctor->n[finding]++;
	if (!doctor->ctl->json) {
		printf("%-5s %-14s %s\n", words[finding], what, text);
		if (remedy)
			printf("%20s -> %s\n", "", remedy);
		return;
	}
	json_begin(&json, stdout);
	json_string(&json, "finding", finding == FINDING_BAD ? "bad" : words[finding]);
	json_string(&json, "what", what);
	json_string(&json, "text", text);
	if (remedy)
		json_string(&json, "remedy", remedy);
	json_end(&json);
}

static const char *
remedy_for(int error)
{
	switch (error) {
	case MLKEMCLIENT_E_UNAVAILABLE:
		return "systemctl status mlkemd; systemctl start mlkemd (or --socket)";
	case MLKEMCLIENT_E_DENIED:
		return "add `allow-users = NAME` under [access] of "
		       "/etc/mlkemd/mlkemd.conf and run `mlkemctl reload`";
	case MLKEMCLIENT_E_IMPOSTOR:
		return "somebody else's program has that socket: end it, and start "
		       "mlkemd anew";
	case MLKEMCLIENT_E_TIMEOUT:
		return "systemctl restart mlkemd (it does not answer)";
	default:
		return "journalctl -u mlkemd";
	}
}

static void
look_at_daemon(struct doctor *doctor)
{
	struct ctl *ctl = doctor->ctl;
	struct mlkemclient_info *info = &doctor->info;
	struct mlkemclient *client = NULL;
	int error;

	if (ctl_client_new(ctl, true, &client))
		return;
	error = mlkemclient_get_info(client, info);
	if (error) {
		doctor_say(doctor, FINDING_BAD, "daemon", remedy_for(error), "%s",
		    mlkemclient_last_message(client));
	} else if (info->draining) {
		doctor_say(doctor, FINDING_BAD, "daemon", "mlkemctl resume",
		    "mlkemd %s is draining: it takes no new operations",
		    info->server_version);
	} else {
		doctor_say(doctor, FINDING_GOOD, "daemon", NULL,
		    "mlkemd %s answers at %s, up for %llu s", info->server_version,
		    ctl->socket_path, (unsigned long long)info->uptime_s);
	}
	if (!error && strcmp(info->server_version, MLKEMD_VERSION) != 0)
		doctor_say(doctor, FINDING_WARN, "version", "systemctl restart mlkemd",
		    "mlkemd is %s and this program %s", info->server_version,
		    MLKEMD_VERSION);
	doctor->answers = !error;
	mlkemclient_free(client);
}

/* Shares that the pool had not when they were asked for are computed, and cost time. */
static void
look_at_pool(struct doctor *doctor)
{
	static struct stats stats; /* large */
	uint64_t taken, missed, shed;
	int status;

	if (!doctor->answers)
		return;
	status = stats_try(doctor->ctl, &stats);
	if (status) {
		doctor_say(doctor, FINDING_NOTE, "counters",
		    status == CTL_DENIED ? "run it as root"
					 : "--control-socket names another",
		    "the control socket could not be asked: pool and load not seen");
		return;
	}
	taken = stats_value(&stats, "pool_taken_total");
	missed = stats_value(&stats, "pool_missed_total");
	shed = stats_value(&stats, "shed_total");
	if (missed > 100 && missed > taken / 10)
		doctor_say(doctor, FINDING_WARN, "pool",
		    "raise pool.hybrid or pool.x25519 in /etc/mlkemd/mlkemd.conf",
		    "empty %llu times, %llu given out", (unsigned long long)missed,
		    (unsigned long long)taken);
	else
		doctor_say(doctor, FINDING_GOOD, "pool", NULL,
		    "%llu given out, empty %llu times", (unsigned long long)taken,
		    (unsigned long long)missed);
	if (shed)
		doctor_say(doctor, FINDING_WARN, "limits",
		    "journalctl -u mlkemd tells which of [limits] to raise",
		    "%llu requests or connections were turned away",
		    (unsigned long long)shed);
}

int
ctl_doctor(struct ctl *ctl)
{
	struct doctor doctor = {.ctl = ctl};

	look_at_daemon(&doctor);
	doctor_look_at_socket(&doctor);
	doctor_look_at_cpu(&doctor);
	doctor_look_at_memory(&doctor);
	look_at_pool(&doctor);
	doctor_look_at_users(&doctor);
	doctor_look_at_provider(&doctor);
	if (!ctl->json)
		printf("%u good, %u to note, %u slower or less safe than could be, "
		       "%u that do not work\n",
		    doctor.n[FINDING_GOOD], doctor.n[FINDING_NOTE],
		    doctor.n[FINDING_WARN], doctor.n[FINDING_BAD]);
	if (!doctor.n[FINDING_BAD])
		return CTL_OK;
	ctl_note("doctor: %u of these do not work", doctor.n[FINDING_BAD]);
	return CTL_FAILED;
}
