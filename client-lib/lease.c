/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <string.h>

#include "client-lib/client.h"
#include "kem/fault.h"

#define FIRST_WANTED    8u
#define PAUSE_US        1000000u
#define LIFETIME_MS     60000u /* of a daemon that does not tell */
#define LIFETIME_MAX_MS 3600000u

struct lease_rack *
lease_rack_of(struct mlkemclient *client, enum kem_alg alg)
{
	struct lease_rack *rack = &client->live->racks[alg == KEM_ALG_X25519MLKEM768];

	if (client->leases == 0 ||
	    (alg != KEM_ALG_X25519MLKEM768 && alg != KEM_ALG_MLKEM768))
		return NULL;
	if (rack->room != NULL)
		return rack;
	rack->room = room_new(&client->rooms,
	    MLKEMCLIENT_MAX_LEASES * sizeof(struct lease), ROOM_NOT_SECRET);
	if (rack->room == NULL)
		return NULL;
	rack->alg = alg;
	rack->n_wanted = client->leases < FIRST_WANTED ? client->leases : FIRST_WANTED;
	return rack;
}

static struct lease *
lease_at(const struct lease_rack *rack, unsigned i)
{
	struct lease *leases = (struct lease *)(void *)rack->room->base;

	return &leases[(rack->first + i) % MLKEMCLIENT_MAX_LEASES];
}

/*
 * Half of its life a handle may lie here, the other half is for the handshake. Those
 * that grew old were too many: the next time it will be fewer.
 */
static void
drop_old(struct mlkemclient *client, struct lease_rack *rack)
{
	uint64_t now_us = rack->n != 0 ? client_age_now(client) : 0;
	unsigned n = 0;

	while (rack->n != 0 && lease_at(rack, 0)->until_us <= now_us &&
	       !fault("client-old-leases")) {
		link_unwanted(&client->live->link, lease_at(rack, 0)->handle);
		rack->first = (rack->first + 1) % MLKEMCLIENT_MAX_LEASES;
		rack->n--;
		n++;
	}
	if (n == 0)
		return;
	link_release(client);
	client->live->counts.leases_dropped += n;
	if (rack->n_wanted > n)
		rack->n_wanted = n;
	rack->n_wanted = rack->n_wanted / 2 + 1;
	if (rack->n_wanted > client->leases)
		rack->n_wanted = client->leases;
}

bool
lease_take(struct mlkemclient *client, struct lease_rack *rack, struct job_item *item)
{
	struct link *link = &client->live->link;
	struct lease *lease;

	/* The answer lies in the socket, if no leader has found it yet. */
	if (rack->asked_id != 0 && rack->n <= rack->n_wanted / 4 && link->ready &&
	    link->leader == NULL)
		answers_take(client);
	drop_old(client, rack);
	if (rack->n == 0)
		return false;
	lease = lease_at(rack, 0);
	memcpy(item->out_share, lease->share, kem_alg_info(rack->alg)->share_bytes);
	key_made_in_daemon(item->key, lease->handle, true);
	item->error = 0;
	if (!fault("client-lease-twice")) {
		rack->first = (rack->first + 1) % MLKEMCLIENT_MAX_LEASES;
		rack->n--;
	}
	client->live->counts.by_lease++;
	client->live->counts.by_daemon++;
	return true;
}

static void
ask(struct mlkemclient *client, struct lease_rack *rack, uint64_t now_us)
{
	struct call call = {.op = CALL_LEASE, .rack = rack};

	rack->n_asked = rack->n_wanted - rack->n;
	rack->asked_us = now_us;
	rack->asked_age_us = client_age_now(client);
	if (link_tell(client, &call, &rack->asked_id) != 0) {
		rack->asked_id = 0;
		rack->not_before_us = now_us + PAUSE_US;
	}
}

void
lease_tend(struct mlkemclient *client, struct lease_rack *rack, uint64_t now_us)
{
	struct link *link = &client->live->link;

	if (!link->ready)
		return;
	if (rack->asked_id != 0) {
		if (now_us - rack->asked_us < client->deadline_us)
			return;
		/* Silence: calls will find out whether it lasts. */
		rack->not_before_us = now_us + PAUSE_US;
		if (!link_abandon(link, rack->asked_id, LATE_KEYS_RELEASE))
			link_close(client, LINK_E_LOST);
		rack->asked_id = 0;
		return;
	}
	if (rack->n <= rack->n_wanted / 2 && now_us >= rack->not_before_us &&
	    client->live->breaker.error == 0)
		ask(client, rack, now_us);
}

struct lease_rack *
lease_find(struct mlkemclient *client, uint64_t id)
{
	for (unsigned i = 0; i < CLIENT_N_RACKS && id != 0; i++)
		if (client->live->racks[i].asked_id == id)
			return &client->live->racks[i];
	return NULL;
}

void
lease_put(struct mlkemclient *client, struct lease_rack *rack, const uint8_t *share,
    const uint8_t *handle)
{
	uint32_t lifetime_ms = client->live->link.handle_lifetime_ms;
	struct lease *lease;

	if (rack->n == MLKEMCLIENT_MAX_LEASES)
		return;
	if (lifetime_ms == 0)
		lifetime_ms = LIFETIME_MS;
	if (lifetime_ms > LIFETIME_MAX_MS)
		lifetime_ms = LIFETIME_MAX_MS;
	lease = lease_at(rack, rack->n++);
	lease->until_us = rack->asked_age_us + (uint64_t)lifetime_ms * 1000u / 2;
	memcpy(lease->share, share, kem_alg_info(rack->alg)->share_bytes);
	memcpy(lease->handle, handle, sizeof(lease->handle));
}

/*
 * All that was wanted came: as long as they are used up, twice as many the next time.
 */
void
lease_answered(struct mlkemclient *client, struct lease_rack *rack, int error)
{
	rack->asked_id = 0;
	if (error != 0) {
		rack->not_before_us = client_now(client) + PAUSE_US;
		rack->n_wanted = rack->n_wanted / 2 + 1;
	} else {
		rack->n_wanted *= 2;
	}
	if (rack->n_wanted > client->leases)
		rack->n_wanted = client->leases;
}

void
lease_drop_all(struct mlkemclient *client)
{
	for (unsigned i = 0; i < CLIENT_N_RACKS; i++) {
		struct lease_rack *rack = &client->live->racks[i];

		client->live->counts.leases_dropped += rack->n;
		rack->n = 0;
	}
}

void
lease_link_gone(struct mlkemclient *client)
{
	lease_drop_all(client);
	for (unsigned i = 0; i < CLIENT_N_RACKS; i++)
		client->live->racks[i].asked_id = 0;
}
