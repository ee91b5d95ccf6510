/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service_kem.h: the KEM operations of service: what may be settled or refused before
 * anything is computed. For service.c alone.
 *
 * The order in each: the request is judged, all memory that its items need is taken, and
 * only then is anything spent (a handle, a pooled key, room in the table), so that a
 * refusal costs the client nothing.
 */
#ifndef MLKEMD_SERVICE_KEM_H
#define MLKEMD_SERVICE_KEM_H

#include "service.h"

/*
 * Return true if the batch has items of the request now and will finish it, false if
 * every item, or the request itself, has its status.
 */
bool service_keygen(struct service *service, struct request *req);
bool service_encaps(struct service *service, struct request *req);
bool service_decaps(struct service *service, struct request *req);

/* The kdf, if there is one, is within its limits. Sets nothing. */
bool service_kdf_ok(const struct request *req);

/* An item of a cancelled request: its handle, if it had one, is released. */
void service_kem_undo(struct service *service, struct request_item *item);

/* The user's share of that pool is not used up. */
bool service_may_take(
    const struct service *service, const struct request *req, unsigned kind);

/* Between service_keygen.c and service_kem.c. True: refused. */
bool service_refuse_draining(const struct service *service, struct request *req);
/* The request finds no codec memory. Returns false, as the operation then does. */
bool service_out_of_memory(struct request *req);

#endif
