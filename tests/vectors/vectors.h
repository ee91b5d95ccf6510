/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vectors.h: test vectors of others, read strictly: an unknown field, group or length ends
 * the test, and every file has to run as many cases as it holds. All memory lives until
 * vectors_forget(). One thread.
 */
#ifndef MLKEMD_TESTS_VECTORS_H
#define MLKEMD_TESTS_VECTORS_H

#include <json-c/json.h>

#include "tests/kem/kemtest.h"

struct Suite;

/*
 * Where the vectors lie: MLKEMD_VECTORS, else the default of the build. vectors_main()
 * runs the suite, or prints why not and returns 77 if they are not there.
 */
int vectors_main(int argc, char **argv, struct Suite *suite);

struct bytes {
	uint8_t *p;
	size_t len;
};

void *vectors_alloc(size_t len); /* zeroed */
void vectors_forget(void);
struct bytes bytes_new(const void *p, size_t len);
struct bytes bytes_join(struct bytes a, struct bytes b);
struct bytes bytes_hex(const char *hex);

/* The text of a file, NUL-terminated. */
char *vectors_text(const char *path);
/* Splits at newlines in place; empty lines are dropped. NULL at the end. */
char *vectors_line(char **textp);

struct json_object *vectors_json(const char *path);

/* Ends the test unless all fields of the object are among the names (space between). */
void json_only(struct json_object *object, const char *names);
bool json_has(struct json_object *object, const char *name);
struct json_object *json_get(struct json_object *object, const char *name);
const char *json_text(struct json_object *object, const char *name);
size_t json_number(struct json_object *object, const char *name);
bool json_flag(struct json_object *object, const char *name);
struct bytes json_bytes(struct json_object *object, const char *name);
size_t json_len(struct json_object *array);
struct json_object *json_at(struct json_object *array, size_t i);
enum kem_alg json_alg(struct json_object *object, const char *name);

/* Tests in all groups of a file of ACVP or Wycheproof, counted apart from running them. */
size_t vectors_count(struct json_object *file);

/* Prints the line "FILE: N cases" and ends the test unless n is n_in_file and not 0. */
void vectors_ran(const char *path, size_t n, size_t n_in_file);

enum vector_op { VECTOR_KEYGEN, VECTOR_ENCAPS, VECTOR_DECAPS };

/* One case. What is expected of it: status, and then every field that is set. */
struct vector {
	enum vector_op op;
	enum kem_alg alg;
	unsigned id;
	enum kem_status status;
	struct bytes seed;   /* in: key generation; decapsulation if there is no dk */
	struct bytes share;  /* key generation: expected; encapsulation: in */
	struct bytes dk;     /* key generation: expected; decapsulation: in */
	struct bytes m;      /* in */
	struct bytes x_priv; /* in: X25519 private key of an encapsulation */
	struct bytes ct;     /* encapsulation: expected; decapsulation: in */
	struct bytes shared; /* expected */
};

struct vector_list {
	const char *path;
	struct vector *vectors;
	size_t n, size;
};

struct vector *vector_add(struct vector_list *list);

/*
 * Runs all cases on every direct path: one by one, in groups of 2, 7 and 8, and in
 * batches of 9, 33 and 64 with one bad item at each place (key generation has no bad
 * items). Returns how many results were wrong, and prints some of them.
 */
size_t vectors_run(const struct vector_list *list);

/* vectors_run() finds nothing, and finds every expected value that is spoiled. */
void vectors_check(const struct vector_list *list);

#endif
