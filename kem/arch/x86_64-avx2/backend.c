/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "avx2.h"

const struct backend backend_avx2 = {
    .name = "avx2",
    .lanes = 4,
    .narrow = 4,
    .keccak = keccak_avx2,
    .absorb = absorb_avx2,
    .squeeze = squeeze_avx2,
    .rej_uniform = rej_uniform_avx2,
    .cbd2 = cbd2_avx2,
    .cbd3 = cbd3_avx2,
    .ntt = ntt_avx2,
    .invntt = invntt_avx2,
    .mulcache = mulcache_avx2,
    .basemul = basemul_avx2,
    .tomont = tomont_avx2,
    .add = add_avx2,
    .rsub = rsub_avx2,
    .compress =
	{
	    [COMPRESS_1] = compress1_avx2,
	    [COMPRESS_4] = compress4_avx2,
	    [COMPRESS_5] = compress5_avx2,
	    [COMPRESS_10] = compress10_avx2,
	    [COMPRESS_11] = compress11_avx2,
	},
    .decompress =
	{
	    [COMPRESS_1] = decompress1_avx2,
	    [COMPRESS_4] = decompress4_avx2,
	    [COMPRESS_5] = decompress5_avx2,
	    [COMPRESS_10] = decompress10_avx2,
	    [COMPRESS_11] = decompress11_avx2,
	},
    .pack12 = pack12_avx2,
    .unpack12 = unpack12_avx2,
    .check12 = check12_avx2,
    .compare = compare_avx2,
    .select = select_avx2,
};
