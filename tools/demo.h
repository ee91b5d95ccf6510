/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demo.h: the two parties of `mlkemctl demo` and the figures that it shows. cmd_demo.c
 * does one exchange and prints; demo_load.c does many and measures.
 */
#ifndef MLKEMCTL_DEMO_H
#define MLKEMCTL_DEMO_H

#include "ctl.h"
#include "io.h"

struct demo {
	struct ctl *ctl;
	struct mlkemclient *initiator, *responder; /* a connection each */
	struct mlkemclient_info info;
	struct mlkemclient_sizes sizes;
	/* one exchange */
	uint64_t keygen_us, encaps_us, decaps_us;
	char initiator_print[IO_FINGERPRINT_TEXT], responder_print[IO_FINGERPRINT_TEXT];
	/* one exchange with a flipped bit */
	char flipped_print[IO_FINGERPRINT_TEXT], intact_print[IO_FINGERPRINT_TEXT];
	/* many exchanges */
	double exchange_us; /* wall clock, for each */
	double
	    exchange_cpu_us; /* the daemon's, the pool's refill included; 0: unknown */
	double x25519_us;    /* key generation and derivation on both sides */
	double x25519_median_us[2]; /* one key generation, one derivation */
	bool counted;               /* the control socket tells the counters */
	/* the daemon's counters over the many exchanges; n_groups 0: not known */
	uint64_t n_groups, n_group_items, pool_taken, pool_missed, connections;
};

/*
 * demo_load() makes ctl->exchanges exchanges with ctl->in_flight at once and measures
 * them, then X25519 alone by OpenSSL's EVP interface. Every exchange is checked: two
 * different secrets are a failure. Returns CTL_OK, or a status after saying why.
 */
int demo_load(struct demo *demo);

#endif
