/* SPDX-License-Identifier: Apache-2.0 */
/* C2SP/CCTV: unlucky samples, modulus, strcmp, and what accumulated.json says. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#include "kem/kpke.h"
#include "lines.h"

static void
add_both_ways(struct vector_list *list, enum kem_alg alg, struct lines *lines)
{
	*vector_add(list) = (struct vector){.op = VECTOR_ENCAPS,
	    .alg = alg,
	    .share = lines_hex(lines, "ek", 0),
	    .m = lines_hex(lines, "m", 0),
	    .ct = lines_hex(lines, "c", 0),
	    .shared = lines_hex(lines, "K", 0)};
	*vector_add(list) = (struct vector){.op = VECTOR_DECAPS,
	    .alg = alg,
	    .dk = lines_hex(lines, "dk", 0),
	    .ct = lines_hex(lines, "c", 0),
	    .shared = lines_hex(lines, "K", 0)};
}

/*
 * A rho whose matrix takes more blocks than any other test meets. The key is made from
 * G(d_ipd) without the byte k, as the draft did, and then by the code of FIPS 203.
 */
START_TEST(test_unlucky_sample)
{
	static _Alignas(64) uint8_t work[MLKEM_WORK_BYTES];
	static const struct mlkem_set sets[] = {
	    {.k = 2, .eta1 = 3, .du = COMPRESS_10, .dv = COMPRESS_4},
	    {.k = 3, .eta1 = 2, .du = COMPRESS_10, .dv = COMPRESS_4},
	};
	const char *path = _i ? "cctv/unluckysample/ML-KEM-768.txt"
			      : "cctv/unluckysample/ML-KEM-512.txt";
	struct vector_list list = {.path = path};
	uint8_t ek_out[KEM_SHARE_MAX], s_out[KEM_SECRET_MAX], hash[32];
	struct lines lines;
	struct bytes d, z, ek, dk;
	struct group *group;

	lines_read(&lines, path, " = ");
	add_both_ways(&list, (enum kem_alg)_i, &lines);
	vectors_check(&list);
	d = lines_hex(&lines, "d_ipd", 0);
	z = lines_hex(&lines, "z", 0);
	ek = lines_hex(&lines, "ek", 0);
	dk = lines_hex(&lines, "dk", 0);
	for (size_t n = 1; n <= 8; n++) {
		group = group_init(work, test_backend(), &sets[_i], n);
		for (size_t i = 0; i < n; i++) {
			/* all lanes but the last are put over by it */
			group->item[i].ek_out = ek_out;
			group->item[i].secret_out = s_out;
			ck_assert_int_eq(EVP_Digest(d.p, 32, group->item[i].seed, NULL,
					     EVP_sha3_512(), NULL),
			    1);
		}
		kpke_keygen(group);
		group_fini(group);
		ck_assert_mem_eq(ek_out, ek.p, ek.len);
		ck_assert_mem_eq(s_out, dk.p, 384 * sets[_i].k);
	}
	ck_assert_int_eq(EVP_Digest(ek.p, ek.len, hash, NULL, EVP_sha3_256(), NULL), 1);
	ck_assert_mem_eq(dk.p + 384 * sets[_i].k, ek.p, ek.len);
	ck_assert_mem_eq(dk.p + dk.len - 64, hash, 32);
	ck_assert_mem_eq(dk.p + dk.len - 32, z.p, 32);
	lines_done(&lines, path, 7);
}
END_TEST

/* A comparison that stops at a zero byte takes this ciphertext for the right one. */
START_TEST(test_strcmp)
{
	const char *path = "cctv/strcmp/ML-KEM-768.txt";
	struct vector_list list = {.path = path};
	struct lines lines;

	lines_read(&lines, path, " = ");
	*vector_add(&list) = (struct vector){.op = VECTOR_DECAPS,
	    .alg = KEM_ALG_MLKEM768,
	    .dk = lines_hex(&lines, "dk", 0),
	    .ct = lines_hex(&lines, "c", 0),
	    .shared = lines_hex(&lines, "K", 0)};
	vectors_check(&list);
	lines_done(&lines, path, 3);
}
END_TEST

/* Every line is an encapsulation key with one value of q or more. */
START_TEST(test_modulus)
{
	static const uint8_t m[32];
	const char *path = "cctv/modulus/ML-KEM-768.txt";
	struct vector_list list = {.path = path};
	char *text = vectors_text(path), *line;

	while ((line = vectors_line(&text))) {
		struct vector *v = vector_add(&list);

		v->op = VECTOR_ENCAPS;
		v->alg = KEM_ALG_MLKEM768;
		v->status = KEM_E_SHARE;
		v->share = bytes_hex(line);
		v->m = bytes_new(m, 32);
		ck_assert_int_eq(kem_check_share(test_kem(), KEM_ALG_MLKEM768,
				     v->share.p, v->share.len, test_scratch()),
		    KEM_E_SHARE);
	}
	vectors_ran(path, list.n, 780);
	vectors_check(&list);
}
END_TEST

/*
 * The recipe of tests/kem/check_accumulated.c again, with the numbers of rounds and the
 * hashes of this file; there 10 000 rounds always run, here 100 and 1000 too.
 */
static void
accumulate(enum kem_alg alg, size_t n_rounds, uint8_t with_dk[32], uint8_t no_dk[32])
{
	const struct kem_alg_info *info = kem_alg_info(alg);
	const size_t round_bytes = 96 + info->ct_bytes;
	uint8_t *stream = vectors_alloc(n_rounds * round_bytes);
	EVP_MD_CTX *hash[3];
	static struct test_item item;
	struct kem_shared rejected;

	for (size_t i = 0; i < 3; i++) {
		hash[i] = EVP_MD_CTX_new();
		ck_assert_int_eq(EVP_DigestInit_ex(hash[i], EVP_shake128(), NULL), 1);
	}
	ck_assert_int_eq(
	    EVP_DigestFinalXOF(hash[2], stream, n_rounds * round_bytes), 1);
	for (size_t i = 0; i < n_rounds; i++, stream += round_bytes) {
		struct kem_keygen_item k = {
		    .seed = stream, .share = item.share, .secret = item.secret};
		struct kem_encaps_item e = {.share = item.share,
		    .share_len = info->share_bytes,
		    .ct = item.ct,
		    .shared = &item.made};
		struct kem_decaps_item d = {.key = &item.key,
		    .ct = stream + 96,
		    .ct_len = info->ct_bytes,
		    .shared = &rejected};
		int r;

		r = kem_keygen(test_kem(), alg, &k, 1, test_scratch());
		r |= kem_encaps_derand(test_kem(), alg, &e, 1,
		    (const uint8_t(*)[32])(void *)(stream + 64), test_scratch());
		kem_private_from_parts(&item.key, alg, item.secret, item.share);
		kem_private_export(alg, item.secret, item.share, item.dk);
		r |= kem_decaps(test_kem(), alg, &d, 1, test_scratch());
		EVP_DigestUpdate(hash[0], item.share, info->share_bytes);
		EVP_DigestUpdate(hash[1], item.share, info->share_bytes);
		EVP_DigestUpdate(hash[0], item.dk, info->dk_bytes);
		for (size_t h = 0; h < 2; h++) {
			EVP_DigestUpdate(hash[h], item.ct, info->ct_bytes);
			EVP_DigestUpdate(hash[h], &item.made, 32);
			EVP_DigestUpdate(hash[h], &rejected, 32);
		}
		if (r != 0)
			ck_abort_msg("round %zu failed", i);
	}
	ck_assert_int_eq(EVP_DigestFinalXOF(hash[0], with_dk, 32), 1);
	ck_assert_int_eq(EVP_DigestFinalXOF(hash[1], no_dk, 32), 1);
	for (size_t i = 0; i < 3; i++)
		EVP_MD_CTX_free(hash[i]);
}

START_TEST(test_accumulated)
{
	const char *path = "cctv/accumulated.json";
	struct json_object *file = vectors_json(path);
	struct json_object *vectors = json_get(file, "vectors");
	uint8_t with_dk[32], no_dk[32];
	size_t n;

	json_only(file, "description note algorithm vectors");
	ck_assert_str_eq(json_text(file, "algorithm"), "FIPS 203 final (G(d || k))");
	for (n = 0; n < json_len(vectors); n++) {
		struct json_object *v = json_at(vectors, n);

		json_only(v, "parameterSet n with_dk no_dk");
		accumulate(
		    json_alg(v, "parameterSet"), json_number(v, "n"), with_dk, no_dk);
		ck_assert_mem_eq(with_dk, json_bytes(v, "with_dk").p, 32);
		ck_assert_mem_eq(no_dk, json_bytes(v, "no_dk").p, 32);
		/* one round less gives another hash */
		if (json_number(v, "n") > 100)
			continue;
		accumulate(json_alg(v, "parameterSet"), json_number(v, "n") - 1,
		    with_dk, no_dk);
		ck_assert_mem_ne(with_dk, json_bytes(v, "with_dk").p, 32);
	}
	vectors_ran(path, n, 9);
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("cctv");
	TCase *tc = tcase_create("cctv");

	tcase_set_timeout(tc, 300);
	tcase_add_checked_fixture(tc, NULL, vectors_forget);
	tcase_add_loop_test(tc, test_unlucky_sample, 0, 2);
	tcase_add_test(tc, test_strcmp);
	tcase_add_test(tc, test_modulus);
	tcase_add_test(tc, test_accumulated);
	suite_add_tcase(suite, tc);
	return vectors_main(argc, argv, suite);
}
