/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/busypoll.h"

#include <sched.h>

#include "rig.h"

static struct busypoll poll_;

/* n requests that come so long after the reply before; the time after the last reply. */
static uint64_t
requests(unsigned n, uint64_t now_us, uint64_t gap_us)
{
	while (n--) {
		busypoll_note_request(&poll_, now_us + gap_us, BUSYPOLL_AWAKE);
		busypoll_note_reply(&poll_, now_us + gap_us + 30);
		now_us += gap_us + 30;
	}
	return now_us;
}

START_TEST(it_begins_asleep)
{
	busypoll_init(&poll_, 10);
	ck_assert(!busypoll_wants(&poll_, 0));
	requests(1, 1000, 2);
	ck_assert(!busypoll_wants(&poll_, 1033));
}
END_TEST

START_TEST(it_looks_for_as_long_as_a_wake_up_costs)
{
	uint64_t now;

	busypoll_init(&poll_, 10);
	now = requests(BUSYPOLL_GAPS + 1, 1000, 5);
	ck_assert(busypoll_wants(&poll_, now));
	ck_assert(busypoll_wants(&poll_, now + 9));
	ck_assert(!busypoll_wants(&poll_, now + 10));
}
END_TEST

/* Requests that come later than that are slept for; one long gap is enough for 16. */
START_TEST(long_gaps_end_it)
{
	uint64_t now;

	busypoll_init(&poll_, 10);
	now = requests(100, 1000, 10);
	ck_assert(!busypoll_wants(&poll_, now));
	now = requests(BUSYPOLL_GAPS, now, 9);
	ck_assert(busypoll_wants(&poll_, now));
	now = requests(1, now, UINT32_MAX * 4ull);
	ck_assert(!busypoll_wants(&poll_, now));
	now = requests(BUSYPOLL_GAPS - 1, now, 1);
	ck_assert(!busypoll_wants(&poll_, now));
	now = requests(1, now, 1);
	ck_assert(busypoll_wants(&poll_, now));
}
END_TEST

/* n requests by which a shard is woken that sleeps, after it looked or at once. */
static uint64_t
wake_ups(unsigned n, uint64_t now_us, uint64_t gap_us, enum busypoll_seen seen)
{
	while (n--) {
		busypoll_note_request(&poll_, now_us + gap_us, seen);
		busypoll_note_reply(&poll_, now_us + gap_us + 30);
		now_us += gap_us + 30;
	}
	return now_us;
}

/* A sleeper sees a request late by what waking it took: that is no gap of its client's. */
START_TEST(a_wake_up_is_no_gap)
{
	uint64_t now;

	busypoll_init(&poll_, 10);
	now = wake_ups(BUSYPOLL_GAPS + 1, 1000, 19, BUSYPOLL_ASLEEP);
	ck_assert(busypoll_wants(&poll_, now));
	now = wake_ups(BUSYPOLL_GAPS, now, 20, BUSYPOLL_ASLEEP);
	ck_assert(!busypoll_wants(&poll_, now));
}
END_TEST

START_TEST(a_wake_up_that_is_a_gap_is_seen)
{
	if (!rig_hooks())
		return;
	rig_fault("poll-late");
	busypoll_init(&poll_, 10);
	ck_assert(!busypoll_wants(
	    &poll_, wake_ups(BUSYPOLL_GAPS + 1, 1000, 19, BUSYPOLL_ASLEEP)));
	rig_fault(NULL);
}
END_TEST

START_TEST(zero_is_never)
{
	busypoll_init(&poll_, 0);
	ck_assert(!busypoll_wants(&poll_, requests(50, 1000, 0)));
}
END_TEST

START_TEST(what_is_measured_is_bounded)
{
	ck_assert_uint_le(busypoll_measure(), BUSYPOLL_MAX_US);
}
END_TEST

/* They look short, since it is the looking that keeps the client from asking. */
START_TEST(two_looks_in_vain_end_it)
{
	uint64_t now;

	busypoll_init(&poll_, 10);
	now = requests(BUSYPOLL_GAPS + 1, 1000, 0);
	now = wake_ups(1, now, 14, BUSYPOLL_IN_VAIN);
	ck_assert(busypoll_wants(&poll_, now));
	now = wake_ups(1, now, 14, BUSYPOLL_IN_VAIN);
	ck_assert(!busypoll_wants(&poll_, now));
	now = wake_ups(BUSYPOLL_GAPS - 2, now, 4, BUSYPOLL_ASLEEP);
	ck_assert(!busypoll_wants(&poll_, now));
	now = wake_ups(1, now, 4, BUSYPOLL_ASLEEP);
	ck_assert(busypoll_wants(&poll_, now));
}
END_TEST

START_TEST(one_that_goes_on_in_vain_is_seen)
{
	uint64_t now;

	if (!rig_hooks())
		return;
	rig_fault("poll-stubborn");
	busypoll_init(&poll_, 10);
	now = requests(BUSYPOLL_GAPS + 1, 1000, 0);
	ck_assert(busypoll_wants(&poll_, wake_ups(2, now, 14, BUSYPOLL_IN_VAIN)));
	rig_fault(NULL);
}
END_TEST

/* On one CPU the other thread can't run while this one looks. */
START_TEST(one_cpu_never_looks)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	ck_assert(!sched_setaffinity(0, sizeof(one), &one));
	ck_assert_uint_eq(busypoll_measure(), 0);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("busypoll");
	TCase *tcase = tcase_create("busypoll");

	tcase_add_test(tcase, it_begins_asleep);
	tcase_add_test(tcase, it_looks_for_as_long_as_a_wake_up_costs);
	tcase_add_test(tcase, long_gaps_end_it);
	tcase_add_test(tcase, a_wake_up_is_no_gap);
	tcase_add_test(tcase, a_wake_up_that_is_a_gap_is_seen);
	tcase_add_test(tcase, two_looks_in_vain_end_it);
	tcase_add_test(tcase, one_that_goes_on_in_vain_is_seen);
	tcase_add_test(tcase, zero_is_never);
	tcase_add_test(tcase, what_is_measured_is_bounded);
	tcase_add_test(tcase, one_cpu_never_looks);
	suite_add_tcase(suite, tcase);
	return rig_main(suite);
}
