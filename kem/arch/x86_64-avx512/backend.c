/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "avx512.h"
#include "x25519.h"

const struct backend backend_avx512 = {
    .name = "avx512",
    .lanes = 8,
    .narrow = 4,
    .keccak = keccak_avx512,
    .absorb = absorb_avx512,
    .squeeze = squeeze_avx512,
    .rej_uniform = rej_uniform_avx512,
    .cbd2 = cbd2_avx512,
    .cbd3 = cbd3_avx512,
    .ntt = ntt_avx512,
    .invntt = invntt_avx512,
    .mulcache = mulcache_avx512,
    .basemul = basemul_avx512,
    .tomont = tomont_avx512,
    .add = add_avx512,
    .rsub = rsub_avx512,
    .compress =
	{
	    [COMPRESS_1] = compress1_avx512,
	    [COMPRESS_4] = compress4_avx512,
	    [COMPRESS_5] = compress5_avx512,
	    [COMPRESS_10] = compress10_avx512,
	    [COMPRESS_11] = compress11_avx512,
	},
    .decompress =
	{
	    [COMPRESS_1] = decompress1_avx512,
	    [COMPRESS_4] = decompress4_avx512,
	    [COMPRESS_5] = decompress5_avx512,
	    [COMPRESS_10] = decompress10_avx512,
	    [COMPRESS_11] = decompress11_avx512,
	},
    .pack12 = pack12_avx512,
    .unpack12 = unpack12_avx512,
    .check12 = check12_avx512,
    .compare = compare_avx512,
    .select = select_avx512,
    .x25519_base8 = x25519_base8_avx512,
    .x25519_shared8 = x25519_shared8_avx512,
};
