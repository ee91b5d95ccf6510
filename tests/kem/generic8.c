/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "generic8.h"

#include <string.h>

#include "kem/arch/generic/generic.h"
#include "kem/fips202.h"

static _Thread_local struct generic8_counts counts;

void
generic8_reset(void)
{
	memset(&counts, 0, sizeof counts);
}

struct generic8_counts
generic8_counts(void)
{
	return counts;
}

static void
lane_load(uint64_t *one, const uint64_t *state, unsigned lanes, unsigned lane)
{
	for (unsigned i = 0; i < KECCAK_WORDS; i++)
		one[i] = state[i * lanes + lane];
}

static void
lane_store(uint64_t *state, unsigned lanes, unsigned lane, const uint64_t *one)
{
	for (unsigned i = 0; i < KECCAK_WORDS; i++)
		state[i * lanes + lane] = one[i];
}

static void
keccak_lanes(uint64_t *state, unsigned active, unsigned lanes)
{
	uint64_t one[KECCAK_WORDS];

	counts.permutations++;
	for (unsigned lane = 0; lane < lanes; lane++) {
		memset(one, 0xa5, sizeof one);
		if (active >> lane & 1) {
			lane_load(one, state, lanes, lane);
			keccak_generic(one, 1);
		}
		lane_store(state, lanes, lane, one);
	}
}

static void
absorb_lanes(uint64_t *state, const uint8_t *const *block, const uint8_t *words,
    const uint8_t *end, unsigned fresh, unsigned lanes)
{
	uint64_t one[KECCAK_WORDS];

	for (unsigned lane = 0; lane < lanes; lane++) {
		lane_load(one, state, lanes, lane);
		absorb_generic(
		    one, &block[lane], &words[lane], &end[lane], fresh >> lane);
		lane_store(state, lanes, lane, one);
	}
}

static void
squeeze_lanes(
    const uint64_t *state, uint8_t *const *out, const uint8_t *words, unsigned lanes)
{
	uint64_t one[KECCAK_WORDS];
	bool matrix = false;

	for (unsigned lane = 0; lane < lanes; lane++) {
		size_t room = (words[lane] * 8u + 63) / 64 * 64;

		memset(out[lane], 0xa5, room);
		lane_load(one, state, lanes, lane);
		squeeze_generic(one, &out[lane], &words[lane]);
		counts.matrix_blocks += words[lane] == SHAKE128_WORDS;
		matrix |= words[lane] == SHAKE128_WORDS;
	}
	counts.matrix_permutations += matrix;
}

static void
keccak_generic8(uint64_t *state, unsigned active)
{
	keccak_lanes(state, active, 8);
}

static void
absorb_generic8(uint64_t *state, const uint8_t *const *block, const uint8_t *words,
    const uint8_t *end, unsigned fresh)
{
	absorb_lanes(state, block, words, end, fresh, 8);
}

static void
squeeze_generic8(const uint64_t *state, uint8_t *const *out, const uint8_t *words)
{
	squeeze_lanes(state, out, words, 8);
}

static void
keccak_generic4(uint64_t *state, unsigned active)
{
	keccak_lanes(state, active, 4);
}

static void
absorb_generic4(uint64_t *state, const uint8_t *const *block, const uint8_t *words,
    const uint8_t *end, unsigned fresh)
{
	absorb_lanes(state, block, words, end, fresh, 4);
}

static void
squeeze_generic4(const uint64_t *state, uint8_t *const *out, const uint8_t *words)
{
	squeeze_lanes(state, out, words, 4);
}

void
generic4_init(struct backend *backend)
{
	*backend = backend_generic8;
	backend->name = "generic4";
	backend->lanes = backend->narrow = 4;
	backend->keccak = keccak_generic4;
	backend->absorb = absorb_generic4;
	backend->squeeze = squeeze_generic4;
}

const struct backend backend_generic8 = {
    .name = "generic8",
    .lanes = 8,
    .narrow = 4,
    .keccak = keccak_generic8,
    .absorb = absorb_generic8,
    .squeeze = squeeze_generic8,
    .rej_uniform = rej_uniform_generic,
    .cbd2 = cbd2_generic,
    .cbd3 = cbd3_generic,
    .ntt = ntt_generic,
    .invntt = invntt_generic,
    .mulcache = mulcache_generic,
    .basemul = basemul_generic,
    .tomont = tomont_generic,
    .add = add_generic,
    .rsub = rsub_generic,
    .compress =
	{
	    [COMPRESS_1] = compress1_generic,
	    [COMPRESS_4] = compress4_generic,
	    [COMPRESS_5] = compress5_generic,
	    [COMPRESS_10] = compress10_generic,
	    [COMPRESS_11] = compress11_generic,
	},
    .decompress =
	{
	    [COMPRESS_1] = decompress1_generic,
	    [COMPRESS_4] = decompress4_generic,
	    [COMPRESS_5] = decompress5_generic,
	    [COMPRESS_10] = decompress10_generic,
	    [COMPRESS_11] = decompress11_generic,
	},
    .pack12 = pack12_generic,
    .unpack12 = unpack12_generic,
    .check12 = check12_generic,
    .compare = compare_generic,
    .select = select_generic,
};
