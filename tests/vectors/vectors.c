/* SPDX-License-Identifier: Apache-2.0 */
#include "vectors.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SKIPPED 77

struct block {
	struct block *next;
	_Alignas(16) uint8_t bytes[];
};

static struct block *blocks;
static struct json_object *files[16];
static size_t n_files;

static const char *
vectors_dir(void)
{
	const char *dir = getenv("MLKEMD_VECTORS");

	return dir && *dir ? dir : MLKEMD_VECTORS_DEFAULT;
}

int
vectors_main(int argc, char **argv, struct Suite *suite)
{
	struct stat st;

	if (stat(vectors_dir(), &st) < 0 || !S_ISDIR(st.st_mode)) {
		printf("no vectors in %s (set MLKEMD_VECTORS)\n", vectors_dir());
		srunner_free(srunner_create(suite));
		return SKIPPED;
	}
	return test_main(argc, argv, suite);
}

void *
vectors_alloc(size_t len)
{
	struct block *block = calloc(1, sizeof(*block) + len);

	ck_assert_ptr_nonnull(block);
	block->next = blocks;
	blocks = block;
	return block->bytes;
}

void
vectors_forget(void)
{
	struct block *next;

	for (; blocks; blocks = next) {
		next = blocks->next;
		free(blocks);
	}
	while (n_files > 0)
		json_object_put(files[--n_files]);
}

struct bytes
bytes_new(const void *p, size_t len)
{
	/* exactly as long as it is, so that a sanitizer sees a read behind it */
	struct bytes bytes = {vectors_alloc(len), len};

	if (len > 0)
		memcpy(bytes.p, p, len);
	return bytes;
}

struct bytes
bytes_join(struct bytes a, struct bytes b)
{
	struct bytes bytes = {vectors_alloc(a.len + b.len), a.len + b.len};

	memcpy(bytes.p, a.p, a.len);
	memcpy(bytes.p + a.len, b.p, b.len);
	return bytes;
}

struct bytes
bytes_hex(const char *hex)
{
	struct bytes bytes = {NULL, strlen(hex) / 2};

	bytes.p = vectors_alloc(bytes.len);
	test_hex(bytes.p, bytes.len, hex);
	return bytes;
}

char *
vectors_text(const char *path)
{
	char name[4096];
	struct stat st;
	FILE *file;
	char *text;

	snprintf(name, sizeof(name), "%s/%s", vectors_dir(), path);
	file = fopen(name, "r");
	ck_assert_msg(file, "%s can't be read", name);
	ck_assert_int_eq(fstat(fileno(file), &st), 0);
	text = vectors_alloc((size_t)st.st_size + 1);
	ck_assert_uint_eq(fread(text, 1, (size_t)st.st_size, file), st.st_size);
	fclose(file);
	return text;
}

char *
vectors_line(char **textp)
{
	char *line;

	do {
		line = strsep(textp, "\n");
	} while (line && !*line);
	return line;
}

struct json_object *
vectors_json(const char *path)
{
	struct json_object *object = json_tokener_parse(vectors_text(path));

	ck_assert_msg(object, "%s is not JSON", path);
	ck_assert_uint_lt(n_files, sizeof(files) / sizeof(files[0]));
	files[n_files++] = object;
	return object;
}

static bool
is_named(const char *name, const char *names)
{
	size_t len = strlen(name);

	for (; *names; names += strspn(names, " ")) {
		size_t n = strcspn(names, " ");

		if (n == len && memcmp(names, name, n) == 0)
			return true;
		names += n;
	}
	return false;
}

void
json_only(struct json_object *object, const char *names)
{
	struct json_object_iter it;

	ck_assert(json_object_is_type(object, json_type_object));
	json_object_object_foreachC(object, it)
	    ck_assert_msg(is_named(it.key, names), "unknown field %s", it.key);
}

bool
json_has(struct json_object *object, const char *name)
{
	return json_object_object_get_ex(object, name, NULL);
}

struct json_object *
json_get(struct json_object *object, const char *name)
{
	struct json_object *value = NULL;

	ck_assert_msg(
	    json_object_object_get_ex(object, name, &value), "no field %s", name);
	return value;
}

const char *
json_text(struct json_object *object, const char *name)
{
	struct json_object *value = json_get(object, name);

	ck_assert_msg(
	    json_object_is_type(value, json_type_string), "%s is no text", name);
	return json_object_get_string(value);
}

size_t
json_number(struct json_object *object, const char *name)
{
	struct json_object *value = json_get(object, name);

	ck_assert_msg(
	    json_object_is_type(value, json_type_int), "%s is no number", name);
	ck_assert_int_ge(json_object_get_int64(value), 0);
	return (size_t)json_object_get_int64(value);
}

bool
json_flag(struct json_object *object, const char *name)
{
	struct json_object *value = json_get(object, name);

	ck_assert_msg(
	    json_object_is_type(value, json_type_boolean), "%s is no flag", name);
	return json_object_get_boolean(value);
}

struct bytes
json_bytes(struct json_object *object, const char *name)
{
	return bytes_hex(json_text(object, name));
}

size_t
json_len(struct json_object *array)
{
	ck_assert(json_object_is_type(array, json_type_array));
	return json_object_array_length(array);
}

struct json_object *
json_at(struct json_object *array, size_t i)
{
	ck_assert_uint_lt(i, json_len(array));
	return json_object_array_get_idx(array, i);
}

enum kem_alg
json_alg(struct json_object *object, const char *name)
{
	enum kem_alg alg = KEM_N_ALGS;

	ck_assert_msg(kem_alg_parse(json_text(object, name), &alg) == 0,
	    "unknown parameter set %s", json_text(object, name));
	return alg;
}

size_t
vectors_count(struct json_object *file)
{
	struct json_object *groups = json_get(file, "testGroups");
	size_t n = 0;

	for (size_t i = 0; i < json_len(groups); i++)
		n += json_len(json_get(json_at(groups, i), "tests"));
	return n;
}

void
vectors_ran(const char *path, size_t n, size_t n_in_file)
{
	printf("%s: %zu cases\n", path, n);
	ck_assert_uint_gt(n, 0);
	ck_assert_uint_eq(n, n_in_file);
}

struct vector *
vector_add(struct vector_list *list)
{
	if (list->n == list->size) {
		struct vector *more =
		    vectors_alloc(2 * (list->size + 32) * sizeof(*more));

		if (list->n > 0)
			memcpy(more, list->vectors, list->n * sizeof(*more));
		list->vectors = more;
		list->size = 2 * (list->size + 32);
	}
	list->vectors[list->n] = (struct vector){.id = (unsigned)list->n};
	return &list->vectors[list->n++];
}
