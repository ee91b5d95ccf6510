/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The committed frames hold the wire's promise: what is built here must come out as
 * those bytes, which another encoder made (golden/make.py), and those bytes must decode
 * to what is built here. Every operation and every result stands among them.
 */
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mlkemd.pb-c.h"
#include "proto/wire.h"

#define P(name)                Mlkemd__V1__##name
#define E(name)                MLKEMD__V1__##name
#define REQUEST_OF(OP, ...)    .op_case = E(REQUEST__OP_##OP), __VA_ARGS__
#define RESULT_OF(RESULT, ...) .result_case = E(RESPONSE__RESULT_##RESULT), __VA_ARGS__
#define LENGTH_OF(array)       (sizeof(array) / sizeof((array)[0]))
#define FRAME_MAX              4096

/* Bytes that count up from first, as in make.py; each call has its own memory. */
static ProtobufCBinaryData
pattern(size_t len, uint8_t first)
{
	static uint8_t pool[64 * 1024];
	static size_t used;
	ProtobufCBinaryData bytes = {.len = len, .data = pool + used};

	ck_assert_uint_le(used + len, sizeof(pool));
	for (size_t i = 0; i < len; i++)
		bytes.data[i] = (uint8_t)(first + i);
	used += len;
	return bytes;
}

static ProtobufCBinaryData
text(const char *s)
{
	return (ProtobufCBinaryData){.len = strlen(s), .data = (uint8_t *)(uintptr_t)s};
}

static uint8_t file[FRAME_MAX];

static size_t
golden_read(const char *name)
{
	const char *dir = getenv("MLKEMD_GOLDEN");
	char path[512];
	FILE *stream;
	size_t len;

	ck_assert_msg(dir != NULL, "MLKEMD_GOLDEN must name the folder of the frames");
	snprintf(path, sizeof(path), "%s/%s.bin", dir, name);
	stream = fopen(path, "rb");
	ck_assert_msg(stream != NULL, "%s is missing", path);
	len = fread(file, 1, sizeof(file), stream);
	fclose(stream);
	ck_assert_uint_gt(len, WIRE_HEADER_BYTES);
	ck_assert_uint_eq(wire_get_length(file), len - WIRE_HEADER_BYTES);
	return len;
}

static size_t
frame_pack(const ProtobufCMessage *message, uint8_t *frame)
{
	size_t len = protobuf_c_message_get_packed_size(message);

	ck_assert_uint_le(len, FRAME_MAX - WIRE_HEADER_BYTES);
	wire_put_length(frame, (uint32_t)len);
	protobuf_c_message_pack(message, frame + WIRE_HEADER_BYTES);
	return WIRE_HEADER_BYTES + len;
}

static char seen_names[64][48];
static size_t n_seen_names;
static bool seen_ops[64], seen_results[64];

/* Built -> bytes, and bytes -> built again -> bytes: both are the file. */
static void
check_frame(const char *name, const ProtobufCMessage *message)
{
	uint8_t frame[FRAME_MAX];
	size_t file_len = golden_read(name), len;
	ProtobufCMessage *decoded;
	struct wire_prescan scan;

	len = frame_pack(message, frame);
	ck_assert_msg(len == file_len && memcmp(frame, file, len) == 0,
	    "%s: what is encoded is not the golden frame", name);

	decoded = protobuf_c_message_unpack(message->descriptor, NULL,
	    file_len - WIRE_HEADER_BYTES, file + WIRE_HEADER_BYTES);
	ck_assert_msg(decoded != NULL, "%s: does not decode", name);
	len = frame_pack(decoded, frame);
	ck_assert_msg(len == file_len && memcmp(frame, file, len) == 0,
	    "%s: what is decoded is not the golden frame", name);
	protobuf_c_message_free_unpacked(decoded, NULL);

	if (message->descriptor == &mlkemd__v1__request__descriptor) {
		ck_assert_int_eq(wire_prescan(file + WIRE_HEADER_BYTES,
				     file_len - WIRE_HEADER_BYTES, &scan),
		    0);
		ck_assert_uint_eq(scan.op, ((const P(Request) *)message)->op_case);
		ck_assert_uint_eq(scan.id, ((const P(Request) *)message)->id);
		seen_ops[scan.op] = true;
	} else {
		ck_assert_int_eq(wire_prescan_response(file + WIRE_HEADER_BYTES,
				     file_len - WIRE_HEADER_BYTES, &scan),
		    0);
		ck_assert_uint_eq(scan.op, ((const P(Response) *)message)->result_case);
		ck_assert_uint_eq(scan.id, ((const P(Response) *)message)->id);
		seen_results[scan.op] = true;
	}
	snprintf(seen_names[n_seen_names++], sizeof(seen_names[0]), "%s.bin", name);
}

static void
check_request(const char *name, P(Request) request)
{
	P(Request) init = E(REQUEST__INIT);

	request.base = init.base;
	check_frame(name, &request.base);
}

static void
check_response(const char *name, P(Response) response)
{
	P(Response) init = E(RESPONSE__INIT);

	response.base = init.base;
	if (response.message == NULL)
		response.message = init.message;
	check_frame(name, &response.base);
}

static void
check_small_requests(void)
{
	P(Hello) hello = E(HELLO__INIT);
	P(Ping) ping = E(PING__INIT);
	P(Info) info = E(INFO__INIT);
	P(Cancel) cancel = E(CANCEL__INIT);
	P(Stats) stats = E(STATS__INIT);
	P(Drain) drain = E(DRAIN__INIT);
	P(Resume) resume = E(RESUME__INIT);
	P(Reload) reload = E(RELOAD__INIT);
	P(SelfTest) self_test = E(SELF_TEST__INIT);
	char client_name[] = "golden";

	hello.min_version = 1;
	hello.max_version = 1;
	hello.client_name = client_name;
	hello.fallbacks = 3;
	cancel.id = 10;
	check_request(
	    "request-hello", (P(Request)){.id = 1, REQUEST_OF(HELLO, .hello = &hello)});
	hello.auto_daemon = 700;
	hello.auto_local = 5;
	check_request("request-hello-auto",
	    (P(Request)){.id = 1, REQUEST_OF(HELLO, .hello = &hello)});
	check_request(
	    "request-ping", (P(Request)){.id = 2, REQUEST_OF(PING, .ping = &ping)});
	check_request("request-info",
	    (P(Request)){
		.id = 3, .timeout_us = 250000, REQUEST_OF(INFO, .info = &info)});
	check_request("request-cancel",
	    (P(Request)){.id = 11, REQUEST_OF(CANCEL, .cancel = &cancel)});
	check_request("request-stats",
	    (P(Request)){.id = 12, REQUEST_OF(STATS, .stats = &stats)});
	check_request("request-drain",
	    (P(Request)){.id = 13, REQUEST_OF(DRAIN, .drain = &drain)});
	check_request("request-resume",
	    (P(Request)){.id = 14, REQUEST_OF(RESUME, .resume = &resume)});
	check_request("request-reload",
	    (P(Request)){.id = 15, REQUEST_OF(RELOAD, .reload = &reload)});
	check_request("request-self-test",
	    (P(Request)){.id = 16, REQUEST_OF(SELF_TEST, .self_test = &self_test)});
}

static void
check_key_requests(void)
{
	P(GenerateKeys) keygen = E(GENERATE_KEYS__INIT);
	P(GenerateKeys) export = E(GENERATE_KEYS__INIT);
	P(Release) release = E(RELEASE__INIT);
	ProtobufCBinaryData handles[] = {pattern(16, 11), pattern(16, 12)};

	keygen.algorithm = E(ALGORITHM__X25519MLKEM768);
	keygen.count = 64;
	export.algorithm = E(ALGORITHM__ML_KEM_512);
	export.count = 1;
	export.export_private = 1;
	release.n_handles = 2;
	release.handles = handles;
	check_request("request-generate-keys",
	    (P(Request)){.id = 4,
		.timeout_us = 1000000,
		REQUEST_OF(GENERATE_KEYS, .generate_keys = &keygen)});
	check_request("request-generate-keys-export",
	    (P(Request)){.id = 5, REQUEST_OF(GENERATE_KEYS, .generate_keys = &export)});
	check_request("request-release",
	    (P(Request)){.id = 10, REQUEST_OF(RELEASE, .release = &release)});
}

static void
check_encapsulate_requests(void)
{
	P(Encapsulate) plain = E(ENCAPSULATE__INIT);
	P(Encapsulate) with_kdf = E(ENCAPSULATE__INIT);
	P(Kdf) kdf = E(KDF__INIT);
	ProtobufCBinaryData shares[] = {pattern(1216, 1), pattern(1216, 2)};
	ProtobufCBinaryData share[] = {pattern(1568, 3)};

	plain.algorithm = E(ALGORITHM__X25519MLKEM768);
	plain.n_shares = 2;
	plain.shares = shares;
	with_kdf.algorithm = E(ALGORITHM__ML_KEM_1024);
	with_kdf.n_shares = 1;
	with_kdf.shares = share;
	with_kdf.kdf = &kdf;
	kdf.hash = E(KDF_HASH__HKDF_SHA256);
	kdf.salt = pattern(32, 4);
	kdf.info = text("golden");
	kdf.length = 48;
	check_request(
	    "request-encapsulate", (P(Request)){.id = 6,
				       .timeout_us = 1000000,
				       REQUEST_OF(ENCAPSULATE, .encapsulate = &plain)});
	check_request("request-encapsulate-kdf",
	    (P(Request)){.id = 7, REQUEST_OF(ENCAPSULATE, .encapsulate = &with_kdf)});
}

static void
check_decapsulate_requests(void)
{
	P(Decapsulate) by_handle = E(DECAPSULATE__INIT);
	P(Decapsulate) by_key = E(DECAPSULATE__INIT);
	P(DecapsulateItem) first = E(DECAPSULATE_ITEM__INIT);
	P(DecapsulateItem) second = E(DECAPSULATE_ITEM__INIT);
	P(DecapsulateItem) third = E(DECAPSULATE_ITEM__INIT);
	P(DecapsulateItem) * handles[] = {&first, &second}, *keys[] = {&third};
	P(Kdf) kdf = E(KDF__INIT);

	first.handle = pattern(16, 5);
	first.ciphertext = pattern(1120, 6);
	second.handle = pattern(16, 7);
	second.ciphertext = pattern(1120, 8);
	third.private_key = pattern(64, 9);
	third.ciphertext = pattern(1088, 10);
	by_handle.algorithm = E(ALGORITHM__X25519MLKEM768);
	by_handle.n_items = 2;
	by_handle.items = handles;
	by_key.algorithm = E(ALGORITHM__ML_KEM_768);
	by_key.n_items = 1;
	by_key.items = keys;
	by_key.kdf = &kdf;
	kdf.hash = E(KDF_HASH__HKDF_SHA384);
	kdf.info = text("golden");
	kdf.length = 32;
	check_request("request-decapsulate",
	    (P(Request)){
		.id = UINT64_MAX, REQUEST_OF(DECAPSULATE, .decapsulate = &by_handle)});
	check_request("request-decapsulate-key-kdf",
	    (P(Request)){.id = 9, REQUEST_OF(DECAPSULATE, .decapsulate = &by_key)});
}

static P(Algorithm) algorithms[] = {E(ALGORITHM__ML_KEM_512), E(ALGORITHM__ML_KEM_768),
    E(ALGORITHM__ML_KEM_1024), E(ALGORITHM__X25519MLKEM768)};
static char version[] = "0.1.0", backend[] = "generic", memory[] = "mlock";

static P(Load) load_of(uint32_t batch_fill_milli, uint32_t service_us, int draining)
{
	P(Load) load = E(LOAD__INIT);

	load.batch_fill_milli = batch_fill_milli;
	load.service_us = service_us;
	load.draining = draining;
	return load;
}

static void
check_about_responses(void)
{
	P(Load) load = load_of(6250, 180, 0), draining = load_of(0, 0, 1);
	P(Limits) limits = E(LIMITS__INIT);
	P(HelloResult) hello = E(HELLO_RESULT__INIT);
	P(InfoResult) info = E(INFO_RESULT__INIT);
	char denied[] = "uid 1000 is not allowed";

	limits.max_items = 64;
	limits.max_frame_bytes = 524288;
	limits.max_kdf_bytes = 65536;
	limits.max_handles = 1024;
	limits.handle_lifetime_ms = 60000;
	limits.default_timeout_us = 1000000;
	limits.export_allowed = 1;
	hello.version = 1;
	hello.server_version = version;
	hello.connection = 7;
	hello.backend = backend;
	hello.n_algorithms = LENGTH_OF(algorithms);
	hello.algorithms = algorithms;
	hello.limits = &limits;
	info.server_version = version;
	info.backend = backend;
	info.lanes = 1;
	info.secret_memory = memory;
	info.n_algorithms = LENGTH_OF(algorithms);
	info.algorithms = algorithms;
	info.limits = &limits;
	info.shards = 2;
	info.shard = 1;
	info.uptime_s = 86400;
	info.pool_hybrid = 1024;
	info.pool_mlkem768 = 256;
	info.pool_x25519 = 1000;
	check_response("response-hello",
	    (P(Response)){.id = 1, .load = &load, RESULT_OF(HELLO, .hello = &hello)});
	check_response("response-pong", (P(Response)){.id = 2, .load = &load});
	check_response("response-info",
	    (P(Response)){.id = 3, .load = &load, RESULT_OF(INFO, .info = &info)});
	check_response("response-denied",
	    (P(Response)){.id = 1, .status = E(STATUS__DENIED), .message = denied});
	check_response("response-draining",
	    (P(Response)){.id = 8, .status = E(STATUS__DRAINING), .load = &draining});
}

static void
check_key_responses(void)
{
	P(Load) load = load_of(6250, 180, 0);
	P(KeyItem) good = E(KEY_ITEM__INIT), full = E(KEY_ITEM__INIT);
	P(KeyItem) exported = E(KEY_ITEM__INIT);
	P(KeyItem) * items[] = {&good, &full}, *export_items[] = {&exported};
	P(KeysResult) keys = E(KEYS_RESULT__INIT), export = E(KEYS_RESULT__INIT);
	P(ReleaseResult) released = E(RELEASE_RESULT__INIT);
	char message[] = "1024 handles are live";

	good.share = pattern(1216, 21);
	good.handle = pattern(16, 22);
	full.status = E(STATUS__RESOURCE_EXHAUSTED);
	full.message = message;
	exported.share = pattern(800, 23);
	exported.private_key = pattern(1632, 24);
	keys.n_items = 2;
	keys.items = items;
	export.n_items = 1;
	export.items = export_items;
	released.released = 2;
	check_response("response-keys",
	    (P(Response)){.id = 4, .load = &load, RESULT_OF(KEYS, .keys = &keys)});
	check_response("response-keys-export",
	    (P(Response)){.id = 5, RESULT_OF(KEYS, .keys = &export)});
	check_response("response-released",
	    (P(Response)){.id = 10, RESULT_OF(RELEASED, .released = &released)});
}

static void
check_secret_responses(void)
{
	P(Load) load = load_of(6250, 180, 0);
	P(EncapsulatedItem) sent = E(ENCAPSULATED_ITEM__INIT);
	P(EncapsulatedItem) refused = E(ENCAPSULATED_ITEM__INIT);
	P(EncapsulatedItem) * encapsulated_items[] = {&sent, &refused};
	P(EncapsulateResult) encapsulated = E(ENCAPSULATE_RESULT__INIT);
	P(DecapsulatedItem) received = E(DECAPSULATED_ITEM__INIT);
	P(DecapsulatedItem) gone = E(DECAPSULATED_ITEM__INIT);
	P(DecapsulatedItem) * decapsulated_items[] = {&received, &gone};
	P(DecapsulateResult) decapsulated = E(DECAPSULATE_RESULT__INIT);
	char modulus[] = "modulus check", no_key[] = "no such key";

	sent.ciphertext = pattern(1120, 25);
	sent.secret = pattern(64, 26);
	refused.status = E(STATUS__BAD_SHARE);
	refused.message = modulus;
	encapsulated.n_items = 2;
	encapsulated.items = encapsulated_items;
	received.secret = pattern(64, 27);
	gone.status = E(STATUS__KEY_NOT_FOUND);
	gone.message = no_key;
	decapsulated.n_items = 2;
	decapsulated.items = decapsulated_items;
	check_response("response-encapsulated",
	    (P(Response)){.id = 6,
		.load = &load,
		RESULT_OF(ENCAPSULATED, .encapsulated = &encapsulated)});
	check_response("response-decapsulated",
	    (P(Response)){.id = UINT64_MAX,
		.load = &load,
		RESULT_OF(DECAPSULATED, .decapsulated = &decapsulated)});
}

static void
check_control_responses(void)
{
	P(Counter) requests = E(COUNTER__INIT), handles = E(COUNTER__INIT);
	P(Counter) * counters[] = {&requests, &handles};
	P(StatsResult) stats = E(STATS_RESULT__INIT);
	P(SelfTestResult) self_test = E(SELF_TEST_RESULT__INIT);
	char requests_name[] = "requests_total", handles_name[] = "handles";
	char step[] = "reject";

	requests.name = requests_name;
	requests.value = (uint64_t)1 << 40;
	handles.name = handles_name;
	stats.n_counters = 2;
	stats.counters = counters;
	self_test.backend = backend;
	self_test.failed_step = step;
	check_response("response-stats",
	    (P(Response)){.id = 12, RESULT_OF(STATS, .stats = &stats)});
	check_response("response-self-test",
	    (P(Response)){.id = 16, RESULT_OF(SELF_TEST, .self_test = &self_test)});
}

static void
check_all_seen(const ProtobufCMessageDescriptor *descriptor, const bool *seen)
{
	for (unsigned i = 0; i < descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &descriptor->fields[i];

		if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
			ck_assert_msg(seen[field->id], "no golden frame has %s.%s",
			    descriptor->short_name, field->name);
	}
}

static void
check_no_stray_file(void)
{
	const char *path = getenv("MLKEMD_GOLDEN");
	DIR *dir = path != NULL ? opendir(path) : NULL;
	struct dirent *entry;
	size_t n_files = 0;

	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir)) != NULL) {
		size_t i = 0;

		if (strstr(entry->d_name, ".bin") == NULL)
			continue;
		while (i < n_seen_names && strcmp(seen_names[i], entry->d_name) != 0)
			i++;
		ck_assert_msg(
		    i < n_seen_names, "%s is checked by nobody", entry->d_name);
		n_files++;
	}
	closedir(dir);
	ck_assert_uint_eq(n_files, n_seen_names);
}

START_TEST(golden_frames_hold)
{
	check_small_requests();
	check_key_requests();
	check_encapsulate_requests();
	check_decapsulate_requests();
	check_about_responses();
	check_key_responses();
	check_secret_responses();
	check_control_responses();
	check_all_seen(&mlkemd__v1__request__descriptor, seen_ops);
	check_all_seen(&mlkemd__v1__response__descriptor, seen_results);
	check_no_stray_file();
}
END_TEST

/*
 * The control: a frame with any one bit changed is not taken for the golden one. (No
 * frames with a bool: every value but 0 decodes to true.)
 */
START_TEST(golden_frames_notice_any_changed_bit)
{
	static const char *names[] = {"request-hello", "request-release",
	    "response-denied", "response-released", "response-stats"};

	for (size_t n = 0; n < LENGTH_OF(names); n++) {
		size_t len = golden_read(names[n]) - WIRE_HEADER_BYTES, packed_len;
		const ProtobufCMessageDescriptor *descriptor =
		    names[n][2] == 'q' ? &mlkemd__v1__request__descriptor
				       : &mlkemd__v1__response__descriptor;

		for (size_t bit = 0; bit < 8 * len; bit++) {
			uint8_t changed[FRAME_MAX], packed[FRAME_MAX];
			ProtobufCMessage *decoded;

			memcpy(changed, file + WIRE_HEADER_BYTES, len);
			changed[bit / 8] ^= (uint8_t)(1u << bit % 8);
			decoded =
			    protobuf_c_message_unpack(descriptor, NULL, len, changed);
			if (decoded == NULL)
				continue;
			packed_len = frame_pack(decoded, packed);
			protobuf_c_message_free_unpacked(decoded, NULL);
			ck_assert_msg(packed_len != WIRE_HEADER_BYTES + len ||
					  memcmp(packed, file, packed_len) != 0,
			    "%s: bit %zu makes no difference", names[n], bit);
		}
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("golden");
	TCase *tc = tcase_create("golden");
	SRunner *runner = srunner_create(suite);
	int n_failed;

	suite_add_tcase(suite, tc);
	tcase_add_test(tc, golden_frames_hold);
	tcase_add_test(tc, golden_frames_notice_any_changed_bit);
	srunner_run_all(runner, CK_NORMAL);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? 0 : 1;
}
