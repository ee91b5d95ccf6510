/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <string.h>

#include "client-lib/client.h"

static const struct {
	enum mlkemclient_alg wire;
	enum kem_alg alg;
} algs[] = {
    {MLKEMCLIENT_ML_KEM_512, KEM_ALG_MLKEM512},
    {MLKEMCLIENT_ML_KEM_768, KEM_ALG_MLKEM768},
    {MLKEMCLIENT_ML_KEM_1024, KEM_ALG_MLKEM1024},
    {MLKEMCLIENT_X25519MLKEM768, KEM_ALG_X25519MLKEM768},
};

#define N_ALGS (sizeof(algs) / sizeof(algs[0]))
_Static_assert(N_ALGS == KEM_N_ALGS, "an algorithm is missing here");

int
alg_from_public(enum mlkemclient_alg alg, enum kem_alg *algp)
{
	for (size_t i = 0; i < N_ALGS; i++) {
		if (algs[i].wire == alg) {
			*algp = algs[i].alg;
			return 0;
		}
	}
	return MLKEMCLIENT_E_UNSUPPORTED;
}

enum mlkemclient_alg
alg_to_public(enum kem_alg alg)
{
	size_t i = 0;

	while (algs[i].alg != alg)
		i++;
	return algs[i].wire;
}

int
mlkemclient_get_sizes(enum mlkemclient_alg alg, struct mlkemclient_sizes *sizes)
{
	const struct kem_alg_info *info;
	enum kem_alg kem_alg;

	if (sizes == NULL)
		return MLKEMCLIENT_E_INVALID;
	memset(sizes, 0, sizeof(*sizes));
	if (alg_from_public(alg, &kem_alg) != 0)
		return MLKEMCLIENT_E_UNSUPPORTED;
	info = kem_alg_info(kem_alg);
	sizes->share = info->share_bytes;
	sizes->ciphertext = info->ct_bytes;
	sizes->secret = info->shared_bytes;
	sizes->private_key = info->dk_bytes;
	sizes->seed = info->seed_bytes;
	return 0;
}

const char *
mlkemclient_alg_name(enum mlkemclient_alg alg)
{
	enum kem_alg kem_alg;

	if (alg_from_public(alg, &kem_alg) != 0)
		return NULL;
	return kem_alg_info(kem_alg)->name;
}

int
mlkemclient_alg_parse(const char *name, enum mlkemclient_alg *algp)
{
	enum kem_alg kem_alg;

	if (name == NULL || algp == NULL)
		return MLKEMCLIENT_E_INVALID;
	if (kem_alg_parse(name, &kem_alg) != 0)
		return MLKEMCLIENT_E_UNSUPPORTED;
	*algp = alg_to_public(kem_alg);
	return 0;
}
