/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The algorithms: names, sizes (FIPS 203 table 3, RFC 10024 section 4.1), sentences. */
#include "alg.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES 32

/* All follows from k, du and dv. */
#define HALF(set_, hybrid_, k, du, dv)                              \
 {                                                                  \
  .set = (set_), .is_hybrid = (hybrid_), .s_bytes = 384 * (k),      \
  .ek_bytes = 384 * (k) + 32, .ct_bytes = 32 * ((du) * (k) + (dv)), \
  .secret_bytes = 384 * (k) + 64, .dk_bytes = 768 * (k) + 96        \
 }

static const struct alg_half halves[KEM_N_ALGS] = {
    [KEM_ALG_MLKEM512] = HALF(KEM_ALG_MLKEM512, false, 2, 10, 4),
    [KEM_ALG_MLKEM768] = HALF(KEM_ALG_MLKEM768, false, 3, 10, 4),
    [KEM_ALG_MLKEM1024] = HALF(KEM_ALG_MLKEM1024, false, 4, 11, 5),
    [KEM_ALG_X25519MLKEM768] = HALF(KEM_ALG_MLKEM768, true, 3, 10, 4),
};

static const struct kem_alg_info infos[KEM_N_ALGS] = {
    [KEM_ALG_MLKEM512] = {"ML-KEM-512", 800, 768, 32, 832, 1632, 64},
    [KEM_ALG_MLKEM768] = {"ML-KEM-768", 1184, 1088, 32, 1216, 2400, 64},
    [KEM_ALG_MLKEM1024] = {"ML-KEM-1024", 1568, 1568, 32, 1600, 3168, 64},
    [KEM_ALG_X25519MLKEM768] = {"X25519MLKEM768", 1216, 1120, 64, 1248, 2432, 96},
};

const struct alg_half *
alg_half(enum kem_alg alg)
{
	assert((unsigned)alg < KEM_N_ALGS);
	return &halves[alg];
}

const struct kem_alg_info *
kem_alg_info(enum kem_alg alg)
{
	assert((unsigned)alg < KEM_N_ALGS);
	return &infos[alg];
}

/* Lower case without '-' and '_'. Returns false if it does not fit. */
static bool
name_fold(char folded[NAME_MAX_BYTES], const char *name)
{
	size_t n = 0;

	for (; *name; name++) {
		if (*name == '-' || *name == '_')
			continue;
		if (n + 1 >= NAME_MAX_BYTES)
			return false;
		folded[n++] = (char)tolower((unsigned char)*name);
	}
	folded[n] = '\0';
	return true;
}

int
kem_alg_parse(const char *name, enum kem_alg *algp)
{
	char given[NAME_MAX_BYTES], known[NAME_MAX_BYTES];

	if (!name || !name_fold(given, name))
		return -1;
	for (int alg = 0; alg < KEM_N_ALGS; alg++) {
		if (name_fold(known, infos[alg].name) && strcmp(given, known) == 0) {
			*algp = (enum kem_alg)alg;
			return 0;
		}
	}
	return -1;
}

static bool
length_fits(const struct kem_alg_info *info, enum kem_part part, size_t len)
{
	switch (part) {
	case KEM_PART_SHARE:
		return len == info->share_bytes;
	case KEM_PART_CT:
		return len == info->ct_bytes;
	case KEM_PART_KEY:
		return len == info->dk_bytes || len == info->seed_bytes;
	}
	return false;
}

int
kem_alg_of_length(enum kem_part part, size_t len, enum kem_alg *algp)
{
	int n_found = 0;

	for (int alg = 0; alg < KEM_N_ALGS; alg++) {
		if (!length_fits(&infos[alg], part, len))
			continue;
		*algp = (enum kem_alg)alg;
		n_found++;
	}
	return n_found == 1 ? 0 : -1;
}

static const char *
part_name(enum kem_part part)
{
	switch (part) {
	case KEM_PART_SHARE:
		return "public share";
	case KEM_PART_CT:
		return "ciphertext share";
	case KEM_PART_KEY:
		return "private key";
	}
	return "input";
}

/* "X25519MLKEM768 takes 1120" or "ML-KEM-768 takes 2400 (or a seed of 64)" */
static void
explain_allowed(
    char *buf, size_t size, const struct kem_alg_info *info, enum kem_part part)
{
	switch (part) {
	case KEM_PART_SHARE:
		snprintf(buf, size, "%s takes %u", info->name, info->share_bytes);
		break;
	case KEM_PART_CT:
		snprintf(buf, size, "%s takes %u", info->name, info->ct_bytes);
		break;
	case KEM_PART_KEY:
		snprintf(buf, size, "%s takes %u (or a seed of %u)", info->name,
		    info->dk_bytes, info->seed_bytes);
		break;
	}
}

static void
explain_length(char *buf, size_t size, enum kem_alg alg, enum kem_part part, size_t len)
{
	char allowed[80] = "";
	enum kem_alg other;

	explain_allowed(allowed, sizeof(allowed), &infos[alg], part);
	if (kem_alg_of_length(part, len, &other) == 0 && other != alg)
		snprintf(buf, size, "%s of %zu bytes is of %s; %s", part_name(part),
		    len, infos[other].name, allowed);
	else
		snprintf(buf, size, "%s of %zu bytes is of no algorithm; %s",
		    part_name(part), len, allowed);
}

static void
explain_alg(char *buf, size_t size, enum kem_alg alg, enum kem_part part, size_t len)
{
	enum kem_alg other;

	if (kem_alg_of_length(part, len, &other) == 0 && other != alg)
		snprintf(buf, size,
		    "%s is of %s (%zu bytes) but the operation is of %s",
		    part_name(part), infos[other].name, len, infos[alg].name);
	else
		snprintf(buf, size,
		    "%s is of another algorithm than the operation's %s",
		    part_name(part), infos[alg].name);
}

void
kem_explain(char *buf, size_t size, enum kem_status status, enum kem_alg alg,
    enum kem_part part, size_t len)
{
	const char *name = kem_alg_info(alg)->name;

	switch (status) {
	case KEM_OK:
		snprintf(buf, size, "nothing is wrong");
		return;
	case KEM_E_LENGTH:
		explain_length(buf, size, alg, part, len);
		return;
	case KEM_E_ALG:
		explain_alg(buf, size, alg, part, len);
		return;
	case KEM_E_SHARE:
		snprintf(buf, size,
		    "public share holds a value of 3329 or more and so is no %s "
		    "encapsulation key (FIPS 203 section 7.2)",
		    name);
		return;
	case KEM_E_KEY:
		snprintf(buf, size,
		    "private key of %s does not hold the hash of its own "
		    "encapsulation key (FIPS 203 section 7.3)",
		    name);
		return;
	case KEM_E_ZERO:
		snprintf(buf, size,
		    "the X25519 half of %s came out all zero: the peer's X25519 "
		    "share is of low order (RFC 7748 section 6.1)",
		    name);
		return;
	case KEM_E_INTERNAL:
	case KEM_N_STATUS:
		break;
	}
	snprintf(buf, size, "randomness, memory or a library failed; nothing was made");
}

const char *
kem_strerror(int fail)
{
	switch (fail) {
	case 0:
		return "no error";
	case KEM_FAIL_RNG:
		return "the random generator failed";
	case KEM_FAIL_OPENSSL:
		return "libcrypto failed (memory, or an algorithm that it lacks)";
	case KEM_FAIL_BACKEND:
		return "the backend asked for is unknown or can't run on this CPU";
	case KEM_FAIL_SELFTEST:
		return "a known answer did not come out";
	default:
		return "unknown error";
	}
}
