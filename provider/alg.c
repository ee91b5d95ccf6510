/* SPDX-License-Identifier: Apache-2.0 */
#include "alg.h"

#include <string.h>
#include <strings.h>

#include "kem/fault.h"

#define Q         3329u
#define RHO_BYTES 32

const struct alg algs[N_ALGS] = {
    [ALG_MLKEM512] =
	{
	    .id = MLKEMCLIENT_ML_KEM_512,
	    .name = "ML-KEM-512",
	    .names = "ML-KEM-512:MLKEM512:id-alg-ml-kem-512:2.16.840.1.101.3.4.4.1",
	    .description = "ML-KEM-512 (FIPS 203) by mlkemd",
	    .group = "MLKEM512",
	    .bits = 512,
	    .security_bits = 128,
	    .category = 1,
	    .ek = 800,
	    .share = 800,
	    .ciphertext = 768,
	    .secret = 32,
	    .expanded = 1632,
	    .seed = 64,
	},
    [ALG_MLKEM768] =
	{
	    .id = MLKEMCLIENT_ML_KEM_768,
	    .name = "ML-KEM-768",
	    .names = "ML-KEM-768:MLKEM768:id-alg-ml-kem-768:2.16.840.1.101.3.4.4.2",
	    .description = "ML-KEM-768 (FIPS 203) by mlkemd",
	    .group = "MLKEM768",
	    .bits = 768,
	    .security_bits = 192,
	    .category = 3,
	    .ek = 1184,
	    .share = 1184,
	    .ciphertext = 1088,
	    .secret = 32,
	    .expanded = 2400,
	    .seed = 64,
	},
    [ALG_MLKEM1024] =
	{
	    .id = MLKEMCLIENT_ML_KEM_1024,
	    .name = "ML-KEM-1024",
	    .names = "ML-KEM-1024:MLKEM1024:id-alg-ml-kem-1024:2.16.840.1.101.3.4.4.3",
	    .description = "ML-KEM-1024 (FIPS 203) by mlkemd",
	    .group = "MLKEM1024",
	    .bits = 1024,
	    .security_bits = 256,
	    .category = 5,
	    .ek = 1568,
	    .share = 1568,
	    .ciphertext = 1568,
	    .secret = 32,
	    .expanded = 3168,
	    .seed = 64,
	},
    [ALG_X25519MLKEM768] =
	{
	    .id = MLKEMCLIENT_X25519MLKEM768,
	    .name = "X25519MLKEM768",
	    .names = "X25519MLKEM768",
	    .description = "X25519MLKEM768 (RFC 10024) by mlkemd",
	    .group = "X25519MLKEM768",
	    .bits = 768,
	    .security_bits = 192,
	    .category = 3,
	    .ek = 1184,
	    .share = 1216,
	    .ciphertext = 1120,
	    .secret = 64,
	    .expanded = 2432,
	    .seed = 96,
	},
};

bool
alg_has_name(const struct alg *alg, const char *name)
{
	size_t len = strlen(name), n;

	if (strcasecmp(name, alg->group) == 0)
		return true;
	for (const char *p = alg->names; *p != '\0'; p += n + (p[n] == ':')) {
		n = strcspn(p, ":");
		if (n == len && strncasecmp(p, name, n) == 0)
			return true;
	}
	return false;
}

/* Two coefficients of 12 bits lie in three bytes (ByteDecode12). */
bool
alg_share_is_reduced(const struct alg *alg, const uint8_t *share)
{
	unsigned over = 0;

	for (size_t i = 0; i < alg->ek - RHO_BYTES; i += 3) {
		unsigned even = share[i] | (share[i + 1] & 15u) << 8;
		unsigned odd = share[i + 1] >> 4 | (unsigned)share[i + 2] << 4;

		over |= (even >= Q) | (odd >= Q);
	}
	return over == 0 || fault("provider-no-modulus-check");
}
