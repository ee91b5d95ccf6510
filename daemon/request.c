/* SPDX-License-Identifier: Apache-2.0 */
#include "request.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "mem.h"
#include "proto/wire.h"

uint64_t
request_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

__attribute__((format(printf, 2, 0))) static const char *
message_format(struct mem *mem, const char *format, va_list args)
{
	char *text = mem_alloc(mem, WIRE_MAX_MESSAGE_TEXT + 1);

	if (text != NULL)
		vsnprintf(text, WIRE_MAX_MESSAGE_TEXT + 1, format, args);
	return text;
}

void
request_item_fail(
    struct request_item *item, enum request_status status, const char *format, ...)
{
	va_list args;

	item->status = status;
	va_start(args, format);
	item->message = message_format(item->request->mem, format, args);
	va_end(args);
}

void
request_fail(struct request *req, enum request_status status, const char *format, ...)
{
	va_list args;

	req->status = status;
	va_start(args, format);
	req->message = message_format(req->mem, format, args);
	va_end(args);
}

static enum request_status
status_of(enum kem_status status)
{
	switch (status) {
	case KEM_OK:
		return STATUS_OK;
	case KEM_E_LENGTH:
		return STATUS_BAD_LENGTH;
	case KEM_E_ALG:
		return STATUS_ALGORITHM_MISMATCH;
	case KEM_E_SHARE:
		return STATUS_BAD_SHARE;
	case KEM_E_KEY:
		return STATUS_BAD_KEY;
	case KEM_E_ZERO:
		return STATUS_ZERO_X25519;
	case KEM_E_INTERNAL:
	case KEM_N_STATUS:
		break;
	}
	return STATUS_INTERNAL;
}

void
request_item_kem_status(
    struct request_item *item, enum kem_status status, enum kem_part part, size_t len)
{
	char text[WIRE_MAX_MESSAGE_TEXT + 1];

	if (status == KEM_OK) {
		item->status = STATUS_OK;
		item->message = NULL;
		return;
	}
	kem_explain(text, sizeof(text), status, item->request->alg, part, len);
	request_item_fail(item, status_of(status), "%s", text);
}
