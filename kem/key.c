/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Forms of a private key, and the checks of FIPS 203 section 7 for keys that are only
 * looked at. Expanded: s^ || ek || H(ek) || z [|| x25519 private];
 * compact: s^ || H(ek) || z [|| x25519 private], beside its public share.
 */
#include <string.h>

#include "alg.h"
#include "context.h"
#include "fault.h"

void
kem_private_from_parts(struct kem_private *key, enum kem_alg alg, const uint8_t *secret,
    const uint8_t *share)
{
	const struct alg_half *half = alg_half(alg);

	*key = (struct kem_private){
	    .alg = alg,
	    .s = secret,
	    .ek = share,
	    .h = secret + half->s_bytes,
	    .z = secret + half->s_bytes + 32,
	    .trusted = true,
	};
	if (half->is_hybrid) {
		key->x_priv = secret + half->secret_bytes;
		key->x_pub = share + half->ek_bytes;
	}
}

enum kem_status
kem_private_from_dk(
    struct kem_private *key, enum kem_alg alg, const uint8_t *dk, size_t dk_len)
{
	const struct alg_half *half = alg_half(alg);

	*key = (struct kem_private){.alg = alg};
	if (!dk || dk_len != kem_alg_info(alg)->dk_bytes)
		return KEM_E_LENGTH;
	key->s = dk;
	key->ek = key->s + half->s_bytes;
	key->h = key->ek + half->ek_bytes;
	key->z = key->h + 32;
	if (half->is_hybrid)
		key->x_priv = dk + half->dk_bytes;
	return KEM_OK;
}

void
kem_private_export(
    enum kem_alg alg, const uint8_t *secret, const uint8_t *share, uint8_t *dk)
{
	const struct alg_half *half = alg_half(alg);

	memcpy(dk, secret, half->s_bytes);
	memcpy(dk + half->s_bytes, share, half->ek_bytes);
	memcpy(dk + half->s_bytes + half->ek_bytes, secret + half->s_bytes, 64);
	if (half->is_hybrid)
		memcpy(
		    dk + half->dk_bytes, secret + half->secret_bytes, X25519_KEY_BYTES);
}

enum kem_status
kem_check_share(const struct kem *kem, enum kem_alg alg, const uint8_t *share,
    size_t share_len, struct kem_scratch *scratch)
{
	struct mlkem_encaps_item item = {.ek = share};

	if (!share || share_len != kem_alg_info(alg)->share_bytes)
		return KEM_E_LENGTH;
	mlkem_check_ek(kem->backend, alg_half(alg)->set, &item, 1, kem_work(scratch));
	return item.status;
}

enum kem_status
kem_check_dk(const struct kem *kem, enum kem_alg alg, const uint8_t *dk, size_t dk_len,
    struct kem_scratch *scratch)
{
	struct mlkem_decaps_item item = {.trusted = false};
	struct kem_private key;
	enum kem_status status;

	status = kem_private_from_dk(&key, alg, dk, dk_len);
	if (status != KEM_OK)
		return status;
	item.s = key.s;
	item.ek = key.ek;
	item.h = key.h;
	item.z = key.z;
	mlkem_check_dk(kem->backend, alg_half(alg)->set, &item, 1, kem_work(scratch));
	return item.status;
}

struct pairwise {
	uint8_t ct[KEM_CT_MAX];
	struct kem_shared made, found;
};

_Static_assert(KEM_SPARE_OFFSET + sizeof(struct pairwise) <= KEM_FRONT_BYTES, "spare");

int
kem_pairwise_check(const struct kem *kem, enum kem_alg alg, const uint8_t *secret,
    const uint8_t *share, struct kem_scratch *scratch)
{
	const struct kem_alg_info *info = kem_alg_info(alg);
	struct pairwise *p = kem_spare(scratch);
	struct kem_private key;
	struct kem_encaps_item encaps = {.share = share,
	    .share_len = info->share_bytes,
	    .ct = p->ct,
	    .shared = &p->made};
	struct kem_decaps_item decaps = {
	    .key = &key, .ct = p->ct, .ct_len = info->ct_bytes, .shared = &p->found};
	int r;

	kem_private_from_parts(&key, alg, secret, share);
	r = kem_encaps(kem, alg, &encaps, 1, scratch);
	if (r < 0)
		goto out;
	if (fault("kem-pairwise-corrupt"))
		p->ct[0] ^= 1;
	r = kem_decaps(kem, alg, &decaps, 1, scratch);
	if (r < 0)
		goto out;
	if (encaps.status != KEM_OK || decaps.status != KEM_OK ||
	    kem_compare(&p->made, &p->found, sizeof(p->made)) != 0)
		r = KEM_E_KEY;
out:
	kem_wipe(p, sizeof(*p));
	return r;
}
