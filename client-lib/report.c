/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <stdarg.h>
#include <stdio.h>

#include "client-lib/client.h"

/*
 * The one thing that is kept outside of handles: calls of several threads on one handle
 * fail at the same time, and each asks for its own message afterwards.
 */
static _Thread_local struct {
	const struct mlkemclient *client;
	char text[MESSAGE_MAX];
} last;

void
report_clear(const struct mlkemclient *client)
{
	if (last.client == client)
		last.text[0] = '\0';
}

int
client_fail(const struct mlkemclient *client, int error, const char *format, ...)
{
	va_list ap;

	last.client = client;
	va_start(ap, format);
	vsnprintf(last.text, sizeof(last.text), format, ap);
	va_end(ap);
	return error;
}

void
client_explain(const struct mlkemclient *client, enum kem_status status,
    enum kem_alg alg, enum kem_part part, size_t len)
{
	last.client = client;
	kem_explain(last.text, sizeof(last.text), status, alg, part, len);
}

int
call_fail(struct call *call, int error, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(call->message, sizeof(call->message), format, ap);
	va_end(ap);
	return error;
}

const char *
mlkemclient_last_message(const struct mlkemclient *client)
{
	return client != NULL && last.client == client ? last.text : "";
}

void
mlkemclient_copy_message(const struct mlkemclient *client, char *buf, size_t size)
{
	if (buf != NULL && size != 0)
		snprintf(buf, size, "%s", mlkemclient_last_message(client));
}
