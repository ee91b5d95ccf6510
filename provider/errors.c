/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>

#include "provider.h"

static const struct {
	enum reason reason;
	const char *text;
} own_reasons[] = {
    {REASON_CONFIG, "a key of the section has a wrong value"},
    {REASON_NO_PUBLIC, "the key has no public part"},
    {REASON_NO_PRIVATE, "the key has no private part"},
    {REASON_ONE_TIME, "the private part of a one-time key can't be taken out"},
    {REASON_IMMUTABLE, "the key has its parts already and takes no others"},
    {REASON_GROUP, "the group belongs to another algorithm"},
    {REASON_MISMATCH, "the parts of the key do not belong together"},
    {REASON_NULL, "an argument that has to be there is missing"},
    {REASON_BUFFER, "the buffer for a result is too small"},
    {REASON_NOT_INIT, "the operation was not begun"},
};

void
reasons_fill(OSSL_ITEM reasons[N_REASONS + 1])
{
	size_t n = 0;

	for (; n < sizeof(own_reasons) / sizeof(own_reasons[0]); n++)
		reasons[n] = (OSSL_ITEM){
		    (unsigned)own_reasons[n].reason, (void *)own_reasons[n].text};
	for (int error = MLKEMCLIENT_E_INVALID; error >= MLKEMCLIENT_E_INTERNAL;
	     error--, n++)
		reasons[n] = (OSSL_ITEM){(unsigned)(REASON_CLIENT - error),
		    (void *)mlkemclient_strerror(error)};
	reasons[n] = (OSSL_ITEM){0, NULL};
}

_Static_assert(
    sizeof(own_reasons) / sizeof(own_reasons[0]) - MLKEMCLIENT_E_INTERNAL <= N_REASONS,
    "reasons");

void
provider_raise(const struct provider *provider, int line, const char *function,
    uint32_t reason, const char *format, ...)
{
	va_list ap;

	/* An older core may lack them: then there is no text, but still a failure. */
	if (provider->core_new_error == NULL || provider->core_vset_error == NULL)
		return;
	provider->core_new_error(provider->core);
	if (provider->core_set_error_debug != NULL)
		provider->core_set_error_debug(
		    provider->core, "mlkemd.so", line, function);
	va_start(ap, format);
	provider->core_vset_error(provider->core, reason, format, ap);
	va_end(ap);
}

void
provider_raise_client(const struct provider *provider, int line, const char *function,
    int error, const char *message)
{
	provider_raise(provider, line, function, (uint32_t)(REASON_CLIENT - error),
	    message[0] != '\0' ? "%s" : NULL, message);
}
