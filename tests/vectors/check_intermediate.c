/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The intermediate values of C2SP/CCTV, each line of each file. d_ipd is the seed of the
 * initial public draft, which left the byte k out of G(d || k); rho and sigma and all
 * that follows are those of FIPS 203, and there this begins.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#include "kem/kpke.h"
#include "lines.h"

static const struct mlkem_set sets[] = {
    {.k = 2, .eta1 = 3, .du = COMPRESS_10, .dv = COMPRESS_4},
    {.k = 3, .eta1 = 2, .du = COMPRESS_10, .dv = COMPRESS_4},
    {.k = 4, .eta1 = 2, .du = COMPRESS_11, .dv = COMPRESS_5},
};

static const struct mlkem_set *set;
static enum kem_alg alg;
static struct lines lines;
static _Alignas(64) uint8_t work[MLKEM_WORK_BYTES];

/* ByteDecode12 once more, so that it is not ours that is checked against ours. */
static void
decode12(int16_t *out, struct bytes in, unsigned n_polys)
{
	ck_assert_uint_le(n_polys, 16);
	ck_assert_uint_eq(in.len, 384 * n_polys);
	for (size_t i = 0; i < in.len / 3; i++) {
		const uint8_t *b = in.p + 3 * i;

		out[2 * i] = (int16_t)(b[0] | (b[1] & 15) << 8);
		out[2 * i + 1] = (int16_t)(b[1] >> 4 | b[2] << 4);
	}
}

/* Plain polynomials (not in the NTT domain) against a line, modulo q. */
static void
plain_is(const struct poly *p, unsigned n, const char *name, unsigned which)
{
	static int16_t expected[4 * MLKEM_N];

	decode12(expected, lines_hex(&lines, name, which), n);
	for (size_t i = 0; i < n * MLKEM_N; i++) {
		int x = p[i / MLKEM_N].c[i % MLKEM_N] - expected[i];

		if (x % MLKEM_Q != 0)
			ck_abort_msg("%s: coefficient %zu differs", name, i);
	}
}

static void
plain_read(struct poly *p, unsigned n, const char *name)
{
	static int16_t values[4 * MLKEM_N];

	decode12(values, lines_hex(&lines, name, 0), n);
	for (size_t i = 0; i < n * MLKEM_N; i++)
		p[i / MLKEM_N].c[i % MLKEM_N] = values[i];
}

/* Polynomials of the NTT domain, in whatever order the backend keeps them. */
static void
ntt_is(const struct poly *p, unsigned n, const char *name, unsigned which)
{
	struct bytes expected = lines_hex(&lines, name, which);
	uint8_t out[384 * 4];

	ck_assert_uint_eq(expected.len, 384 * n);
	polyvec_encode(test_backend(), out, p, n);
	ck_assert_msg(memcmp(out, expected.p, 384 * n) == 0, "%s differs", name);
}

static void
list_is_head_of(const char *list, const char *name)
{
	static int16_t expected[16 * MLKEM_N];
	int16_t values[MLKEM_N];
	struct bytes hex = lines_hex(&lines, name, 0);

	lines_list(&lines, list, values, MLKEM_N);
	decode12(expected, hex, (unsigned)(hex.len / 384));
	ck_assert_mem_eq(values, expected, sizeof(values));
}

static void
check_matrix(const char *name, bool transposed)
{
	struct group *group = group_init(work, test_backend(), set, 1);
	struct bytes rho = lines_hex(&lines, "ρ", 0),
		     expected = lines_hex(&lines, name, 0);
	uint8_t row[384 * 4];

	ck_assert_uint_eq(expected.len, 384 * set->k * set->k);
	matrix_init(&group->matrix, test_backend(), 1, set->k, transposed, group->ring);
	group->matrix.rho[0] = rho.p;
	sponge_add_last(&group->sponge, &group->matrix.job);
	for (unsigned i = 0; i < set->k; i++) {
		matrix_wait(&group->matrix, &group->sponge);
		polyvec_encode(
		    test_backend(), row, matrix_next(&group->matrix), set->k);
		ck_assert_msg(
		    memcmp(row, expected.p + 384 * set->k * i, 384 * set->k) == 0,
		    "row %u of %s differs", i, name);
	}
	group_fini(group);
}

static void
noise_run(struct group *group, struct bytes seed, unsigned eta_second, bool with_last)
{
	struct noise *noise = &group->noise;

	noise->backend = test_backend();
	noise->seed[0] = seed.p;
	noise->first = group->s;
	noise->second = group->e;
	noise->last = with_last ? group->e2 : NULL;
	noise->n = 1;
	noise->k = set->k;
	noise->eta_first = set->eta1;
	noise->eta_second = eta_second;
	noise_init(noise);
	sponge_add_first(&group->sponge, &noise->job);
	noise_wait(noise, &group->sponge);
}

static void
check_noise(void)
{
	struct group *group = group_init(work, test_backend(), set, 1);

	noise_run(group, lines_hex(&lines, "σ", 0), set->eta1, false);
	plain_is(group->s, set->k, "s", 0);
	plain_is(group->e, set->k, "e", 0);
	for (unsigned j = 0; j < set->k; j++) {
		poly_ntt(test_backend(), &group->s[j]);
		poly_ntt(test_backend(), &group->e[j]);
	}
	ntt_is(group->s, set->k, "dkPKE", 0);
	ntt_is(group->e, set->k, "NTT(e)", 0);
	group_fini(group);
	group = group_init(work, test_backend(), set, 1);
	noise_run(group, lines_hex(&lines, "r", 0), 2, true);
	plain_is(group->s, set->k, "r", 1);
	plain_is(group->e, set->k, "e1", 0);
	plain_is(group->e2, 1, "e2", 0);
	for (unsigned j = 0; j < set->k; j++)
		poly_ntt(test_backend(), &group->s[j]);
	ntt_is(group->s, set->k, "NTT(r)", 0);
	group_fini(group);
	list_is_head_of("A[0, 0]", "A");
	list_is_head_of("s[0]", "s");
	list_is_head_of("NTT(s[0])", "dkPKE");
}

/* From rho and sigma to ek and s^ in one go. */
static void
check_keygen(void)
{
	struct group *group = group_init(work, test_backend(), set, 1);
	struct bytes seed =
	    bytes_join(lines_hex(&lines, "ρ", 0), lines_hex(&lines, "σ", 0));
	struct bytes ek = lines_hex(&lines, "ek", 0), s = lines_hex(&lines, "dkPKE", 0);
	struct bytes t = lines_hex(&lines, "t", 0),
		     again = lines_hex(&lines, "dkPKE", 1);
	uint8_t ek_out[KEM_SHARE_MAX], s_out[KEM_SECRET_MAX];

	ck_assert_uint_eq(seed.len, 64);
	group->item[0].ek_out = ek_out;
	group->item[0].secret_out = s_out;
	memcpy(group->item[0].seed, seed.p, 64);
	kpke_keygen(group);
	group_fini(group);
	ck_assert_uint_eq(ek.len, kem_alg_info(alg)->share_bytes);
	ck_assert_mem_eq(ek_out, ek.p, ek.len);
	ck_assert_mem_eq(s_out, s.p, s.len);
	ck_assert_mem_eq(ek_out, t.p, t.len);
	ck_assert_mem_eq(again.p, ek.p, ek.len);
}

/* d bits a value, least significant first. */
static void
list_is_packed(const char *list, struct bytes packed, unsigned d)
{
	int16_t values[MLKEM_N];

	lines_list(&lines, list, values, MLKEM_N);
	for (unsigned i = 0; i < MLKEM_N; i++) {
		unsigned x = 0;

		for (unsigned bit = 0; bit < d; bit++) {
			size_t at = (size_t)i * d + bit;

			x |= (packed.p[at / 8] >> at % 8 & 1u) << bit;
		}
		ck_assert_int_eq(values[i], (int)x);
	}
}

static void
check_compression(void)
{
	const struct backend *b = test_backend();
	const size_t du_bytes = compress_bytes(set->du),
		     dv_bytes = compress_bytes(set->dv);
	struct bytes c1 = lines_hex(&lines, "c1", 0), c2 = lines_hex(&lines, "c2", 0);
	struct bytes c = bytes_join(c1, c2), c_line = lines_hex(&lines, "c", 0);
	struct bytes m = lines_hex(&lines, "m", 0);
	static struct poly p[4];
	uint8_t out[352 * 4];

	ck_assert_uint_eq(c.len, kem_alg_info(alg)->ct_bytes);
	ck_assert_mem_eq(c.p, c_line.p, c.len);
	plain_read(p, set->k, "u");
	for (unsigned j = 0; j < set->k; j++)
		b->compress[set->du](out + j * du_bytes, p[j].c);
	ck_assert_mem_eq(out, c1.p, c1.len);
	lines_list(&lines, "v", p[0].c, MLKEM_N);
	b->compress[set->dv](out, p[0].c);
	ck_assert_mem_eq(out, c2.p, c2.len);
	list_is_head_of("u[0]", "u");
	list_is_packed("compress(u[0])", c1, (unsigned)du_bytes / 32);
	list_is_packed("compress(v)", c2, (unsigned)dv_bytes / 32);

	polyvec_decompress(b, p, set->du, c1.p, set->k);
	plain_is(p, set->k, "uᵈ", 0);
	for (unsigned j = 0; j < set->k; j++)
		poly_ntt(b, &p[j]);
	ntt_is(p, set->k, "NTT(uᵈ)", 0);
	polyvec_decompress(b, p, set->dv, c2.p, 1);
	plain_is(p, 1, "vᵈ", 0);
	plain_read(p, 1, "w");
	b->compress[COMPRESS_1](out, p[0].c);
	ck_assert_mem_eq(out, m.p, 32);
	b->decompress[COMPRESS_1](p[0].c, m.p);
	plain_is(p, 1, "μ", 0);
}

/* The whole operations with the keys of the file. */
static void
check_operations(const char *path)
{
	struct vector_list list = {.path = path};
	struct bytes dk = lines_hex(&lines, "dk", 0), z = lines_hex(&lines, "z", 0);
	struct bytes h = lines_hex(&lines, "H(ek)", 0);
	struct bytes rejected = lines_hex(&lines, "KBar", 0);
	struct vector *v = vector_add(&list);
	struct kem_private key;
	struct kem_shared shared;
	struct kem_decaps_item item = {.key = &key, .shared = &shared};
	uint8_t zeros[384 * 4] = {0};

	*v = (struct vector){.op = VECTOR_ENCAPS,
	    .alg = alg,
	    .share = lines_hex(&lines, "ek", 0),
	    .m = lines_hex(&lines, "m", 0),
	    .ct = lines_hex(&lines, "c", 0),
	    .shared = lines_hex(&lines, "K", 0)};
	v = vector_add(&list);
	*v = (struct vector){.op = VECTOR_DECAPS,
	    .alg = alg,
	    .dk = dk,
	    .ct = lines_hex(&lines, "c", 0),
	    .shared = lines_hex(&lines, "K", 0)};
	vectors_check(&list);

	ck_assert_int_eq(kem_private_from_dk(&key, alg, dk.p, dk.len), KEM_OK);
	ck_assert_mem_eq(key.h, h.p, 32);
	ck_assert_mem_eq(key.z, z.p, 32);
	/* a key that decrypts to nonsense rejects the ciphertext */
	key.s = zeros;
	item.ct = v->ct.p;
	item.ct_len = v->ct.len;
	ck_assert_int_eq(kem_decaps(test_kem(), alg, &item, 1, test_scratch()), 0);
	ck_assert_int_eq(item.status, KEM_OK);
	ck_assert_mem_eq(shared.bytes, rejected.p, 32);
}

/* The draft's G(d), to be sure of what d_ipd is: no key of ours comes from it. */
static void
check_draft_seed(void)
{
	struct bytes d = lines_hex(&lines, "d_ipd", 0);
	struct bytes expected =
	    bytes_join(lines_hex(&lines, "ρ", 0), lines_hex(&lines, "σ", 0));
	uint8_t out[64];

	ck_assert_int_eq(EVP_Digest(d.p, 32, out, NULL, EVP_sha3_512(), NULL), 1);
	ck_assert_mem_eq(out, expected.p, 64);
}

static const char *const paths[] = {
    "cctv/intermediate/ML-KEM-512.txt",
    "cctv/intermediate/ML-KEM-768.txt",
    "cctv/intermediate/ML-KEM-1024.txt",
};

START_TEST(test_intermediate)
{
	set = &sets[_i];
	alg = (enum kem_alg)_i;
	lines_read(&lines, paths[_i], " = ");
	check_draft_seed();
	check_keygen();
	check_matrix("A", false);
	check_matrix("A^T", true);
	check_noise();
	check_compression();
	check_operations(paths[_i]);
	lines_done(&lines, paths[_i], 39);
}
END_TEST

int
main(int argc, char **argv)
{
	Suite *suite = suite_create("intermediate");
	TCase *tc = tcase_create("intermediate");

	tcase_set_timeout(tc, 300);
	tcase_add_checked_fixture(tc, NULL, vectors_forget);
	tcase_add_loop_test(tc, test_intermediate, 0, 3);
	suite_add_tcase(suite, tc);
	return vectors_main(argc, argv, suite);
}
