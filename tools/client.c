/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "ctl.h"

int
ctl_client_new(const struct ctl *ctl, bool own_require, struct mlkemclient **clientp)
{
	struct mlkemclient_options options = {
	    .size = sizeof(options),
	    .socket_path = ctl->socket_path,
	    .client_name = "mlkemctl",
	    .route = ctl->local ? MLKEMCLIENT_ROUTE_LOCAL : MLKEMCLIENT_ROUTE_DAEMON,
	    .require = ctl->require || own_require,
	    .deadline_us = ctl->timeout_ms * 1000,
	};
	int error = mlkemclient_new(clientp, &options);

	if (error == MLKEMCLIENT_E_INVALID && strlen(ctl->socket_path) > 107)
		return ctl_fail(ctl, CTL_USAGE,
		    "--socket is %zu bytes long; a socket's path has at most 107",
		    strlen(ctl->socket_path));
	if (error)
		return ctl_client_fail(ctl, NULL, error, "cannot start");
	return CTL_OK;
}

static enum ctl_exit
exit_of_error(int error)
{
	switch (error) {
	case MLKEMCLIENT_E_UNAVAILABLE:
	case MLKEMCLIENT_E_IMPOSTOR:
	case MLKEMCLIENT_E_PROTOCOL:
		return CTL_UNREACHABLE;
	case MLKEMCLIENT_E_DENIED:
	case MLKEMCLIENT_E_NO_EXPORT:
		return CTL_DENIED;
	case MLKEMCLIENT_E_LENGTH:
	case MLKEMCLIENT_E_BAD_SHARE:
	case MLKEMCLIENT_E_BAD_KEY:
	case MLKEMCLIENT_E_ALGORITHM:
	case MLKEMCLIENT_E_ZERO_X25519:
		return CTL_REFUSED;
	case MLKEMCLIENT_E_TIMEOUT:
	case MLKEMCLIENT_E_EXHAUSTED:
	case MLKEMCLIENT_E_DRAINING:
		return CTL_BUSY;
	default:
		return CTL_FAILED;
	}
}

/* What a person can do about it; empty where the message says all. */
static const char *
advice(const struct ctl *ctl, int error)
{
	switch (error) {
	case MLKEMCLIENT_E_UNAVAILABLE:
		return ctl->takes_local && !ctl->require
			   ? "; is mlkemd running there? (--socket names another, "
			     "--local needs none)"
			   : "; is mlkemd running there? (--socket names another)";
	case MLKEMCLIENT_E_NO_EXPORT:
		return "; to allow it, set `export-private-keys = yes` in section "
		       "[kem] of /etc/mlkemd/mlkemd.conf and run `mlkemctl reload`";
	case MLKEMCLIENT_E_KEY_GONE:
		return "; a key in the daemon lives about a minute and is used once: "
		       "start again with `mlkemctl keygen`";
	case MLKEMCLIENT_E_DENIED:
		return "; the daemon's log names the line to add to its "
		       "configuration";
	default:
		return "";
	}
}

int
ctl_client_fail(const struct ctl *ctl, const struct mlkemclient *client, int error,
    const char *doing)
{
	const char *message = client ? mlkemclient_last_message(client) : NULL;

	if (!message || !*message)
		message = mlkemclient_strerror(error);
	/* "mlkemctl ping: ping: ..." says nothing twice. */
	if (ctl->command && strcmp(doing, ctl->command) == 0)
		return ctl_fail(
		    ctl, exit_of_error(error), "%s%s", message, advice(ctl, error));
	return ctl_fail(
	    ctl, exit_of_error(error), "%s: %s%s", doing, message, advice(ctl, error));
}

bool
ctl_note_fallback(const struct ctl *ctl, const struct mlkemclient *client)
{
	struct mlkemclient_counts counts;

	mlkemclient_get_counts(client, &counts);
	if (counts.fallbacks > 0)
		ctl_note("no mlkemd served this at %s: computed in this process "
			 "(--require makes that an error)",
		    ctl->socket_path);
	return counts.by_local > 0;
}
