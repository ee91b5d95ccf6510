/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "generic.h"

const struct backend backend_generic = {
    .name = "generic",
    .lanes = 1,
    .narrow = 1,
    .keccak = keccak_generic,
    .absorb = absorb_generic,
    .squeeze = squeeze_generic,
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
