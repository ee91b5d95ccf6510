/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_keys.c: keygen, encaps, decaps: the two sides of a key exchange at a shell. Public
 * values are printed; a secret is shown by its fingerprint alone and written only to
 * --secret-out.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ctl.h"
#include "io.h"
#include "json.h"

#define LOCAL_WAIT_MS 60000 /* for --peer FILE, where no daemon names a life time */

static bool
out_is_file(const struct ctl *ctl)
{
	return ctl->out_path && strcmp(ctl->out_path, "-") != 0;
}

/* What goes to files goes there first: so a JSON object, once begun, is whole. */
static int
save(const struct ctl *ctl, const uint8_t *public, size_t public_len,
    const uint8_t *secret, size_t secret_len)
{
	int status = CTL_OK;

	if (secret && ctl->secret_path)
		status = io_write_secret(ctl, ctl->secret_path, secret, secret_len);
	if (!status && public && out_is_file(ctl))
		status = io_write_public(ctl, NULL, public, public_len);
	return status;
}

/* A public value on stdout, unless it went to --out. */
static int
show_public(const struct ctl *ctl, struct json *json, const char *label,
    const uint8_t *data, size_t len)
{
	char text[2 * MLKEMCLIENT_MAX_SHARE + 1];
	enum bytes_format format = ctl->format == BYTES_RAW ? BYTES_HEX : ctl->format;

	if (!ctl->json)
		return out_is_file(ctl) ? CTL_OK
					: io_write_public(ctl, label, data, len);
	if (out_is_file(ctl))
		json_string(json, "file", ctl->out_path);
	text[bytes_encode(format, data, len, (uint8_t *)text)] = '\0';
	json_string(json, label, text);
	return CTL_OK;
}

static void
show_fingerprint(const struct ctl *ctl, struct json *json, const char *fingerprint,
    size_t secret_len)
{
	if (ctl->json) {
		json_string(json, "fingerprint", fingerprint);
		json_number(json, "secret_bytes", secret_len);
		if (ctl->secret_path)
			json_string(json, "secret_file", ctl->secret_path);
		return;
	}
	fprintf(
	    io_out_is_bare(ctl) ? stderr : stdout, "fingerprint: %s\n", fingerprint);
	fflush(stdout);
}

static void
show_route(const struct ctl *ctl, struct json *json, const struct mlkemclient *client)
{
	bool local = ctl_note_fallback(ctl, client);

	if (ctl->json)
		json_string(json, "computed_in", local ? "process" : "daemon");
}

static void
begin(const struct ctl *ctl, struct json *json)
{
	if (!ctl->json)
		return;
	json_begin(json, stdout);
	json_flag(json, "ok", true);
	json_string(json, "algorithm", mlkemclient_alg_name(ctl->alg));
}

static void
end(const struct ctl *ctl, struct json *json)
{
	if (ctl->json)
		json_end(json);
}

static uint32_t
key_lifetime_ms(struct mlkemclient *client, const struct mlkemclient_key *key)
{
	struct mlkemclient_info info;

	if (!mlkemclient_key_in_daemon(key) || mlkemclient_get_info(client, &info))
		return LOCAL_WAIT_MS;
	return info.handle_lifetime_ms;
}

/* The second half of keygen: the peer's ciphertext share comes in, a secret comes out. */
static int
finish_exchange(struct ctl *ctl, struct mlkemclient *client,
    struct mlkemclient_key *key, const struct io_peer *peer, uint32_t lifetime_ms)
{
	struct mlkemclient_sizes sizes;
	uint8_t secret[MLKEMCLIENT_MAX_SECRET];
	char fingerprint[IO_FINGERPRINT_TEXT];
	struct json json;
	struct io_input in;
	int status, error;

	if (mlkemclient_get_sizes(ctl->alg, &sizes))
		return ctl_fail(ctl, CTL_FAILED, "no sizes for this algorithm");
	status = io_peer_read(ctl, peer,
	    &(struct io_wanted){.what = "ciphertext share",
		.option = "--peer",
		.len = sizes.ciphertext},
	    lifetime_ms, &in);
	if (status)
		return status;
	error = mlkemclient_decaps(client, key, in.bytes, in.len, secret, sizes.secret);
	if (error)
		return ctl_client_fail(ctl, client, error, "decapsulation");
	status = io_fingerprint(ctl, secret, sizes.secret, fingerprint);
	if (!status)
		status = save(ctl, NULL, 0, secret, sizes.secret);
	mlkemclient_wipe(secret, sizeof(secret));
	if (status)
		return status;
	begin(ctl, &json);
	show_fingerprint(ctl, &json, fingerprint, sizes.secret);
	end(ctl, &json);
	return CTL_OK;
}

static int
keygen_exchange(
    struct ctl *ctl, struct mlkemclient *client, const struct mlkemclient_sizes *sizes)
{
	uint8_t share[MLKEMCLIENT_MAX_SHARE];
	struct mlkemclient_key *key = NULL;
	uint32_t lifetime_ms;
	struct io_peer peer;
	struct json json;
	int status, error;

	io_peer_init(&peer, ctl->peer_path);
	error = mlkemclient_keygen(client, ctl->alg, share, sizes->share, &key);
	if (error)
		return ctl_client_fail(ctl, client, error, "key generation");
	lifetime_ms = key_lifetime_ms(client, key);
	status = save(ctl, share, sizes->share, NULL, 0);
	if (status)
		goto out;
	begin(ctl, &json);
	status = show_public(ctl, &json, "share", share, sizes->share);
	show_route(ctl, &json, client);
	end(ctl, &json);
	if (!status && !ctl->json && isatty(STDERR_FILENO))
		ctl_note("give the share to the peer (mlkemctl encaps); its answer is "
			 "awaited %s for %u s",
		    ctl->peer_path ? "in --peer" : "here", lifetime_ms / 1000);
	if (!status)
		status = finish_exchange(ctl, client, key, &peer, lifetime_ms);
out:
	mlkemclient_key_free(client, key);
	return status;
}

static int
keygen_export(
    struct ctl *ctl, struct mlkemclient *client, const struct mlkemclient_sizes *sizes)
{
	uint8_t share[MLKEMCLIENT_MAX_SHARE];
	uint8_t private_key[MLKEMCLIENT_MAX_PRIVATE_KEY];
	struct json json;
	int status, error;

	error = mlkemclient_keygen_export(
	    client, ctl->alg, share, sizes->share, private_key, sizes->private_key);
	if (error)
		return ctl_client_fail(ctl, client, error, "key generation");
	status =
	    io_write_secret(ctl, ctl->export_path, private_key, sizes->private_key);
	mlkemclient_wipe(private_key, sizeof(private_key));
	if (!status)
		status = save(ctl, share, sizes->share, NULL, 0);
	if (status)
		return status;
	begin(ctl, &json);
	status = show_public(ctl, &json, "share", share, sizes->share);
	if (ctl->json)
		json_string(&json, "key_file", ctl->export_path);
	show_route(ctl, &json, client);
	end(ctl, &json);
	return status;
}

static int
check_paths(const struct ctl *ctl)
{
	int status = io_check_out_path(ctl);

	if (!status && ctl->secret_path)
		status = io_check_secret_path(ctl, "--secret-out", ctl->secret_path);
	if (!status && ctl->export_path)
		status = io_check_secret_path(ctl, "--export", ctl->export_path);
	return status;
}

int
ctl_keygen(struct ctl *ctl)
{
	struct mlkemclient_sizes sizes;
	struct mlkemclient *client = NULL;
	int status;

	if (ctl->export_path && (ctl->peer_path || ctl->secret_path))
		return ctl_fail(ctl, CTL_USAGE,
		    "--export makes no exchange: --peer and --secret-out belong to "
		    "keygen without it, or to decaps --key");
	if (mlkemclient_get_sizes(ctl->alg, &sizes))
		return ctl_fail(ctl, CTL_FAILED, "no sizes for this algorithm");
	status = check_paths(ctl);
	if (status)
		return status;
	status = ctl_client_new(ctl, false, &client);
	if (status)
		return status;
	status = ctl->export_path ? keygen_export(ctl, client, &sizes)
				  : keygen_exchange(ctl, client, &sizes);
	mlkemclient_free(client);
	return status;
}

int
ctl_encaps(struct ctl *ctl)
{
	uint8_t ciphertext[MLKEMCLIENT_MAX_CIPHERTEXT], secret[MLKEMCLIENT_MAX_SECRET];
	char fingerprint[IO_FINGERPRINT_TEXT];
	struct mlkemclient_sizes sizes;
	struct mlkemclient *client = NULL;
	struct io_input in;
	struct json json;
	int status, error;

	if (mlkemclient_get_sizes(ctl->alg, &sizes))
		return ctl_fail(ctl, CTL_FAILED, "no sizes for this algorithm");
	status = check_paths(ctl);
	if (status)
		return status;
	status = io_read(ctl, ctl->in_path,
	    &(struct io_wanted){
		.what = "public share", .option = "--in", .len = sizes.share},
	    &in);
	if (status)
		return status;
	status = ctl_client_new(ctl, false, &client);
	if (status)
		return status;
	error = mlkemclient_encaps(client, ctl->alg, in.bytes, in.len, ciphertext,
	    sizes.ciphertext, secret, sizes.secret);
	if (error) {
		status = ctl_client_fail(ctl, client, error, "encapsulation");
		goto out;
	}
	status = io_fingerprint(ctl, secret, sizes.secret, fingerprint);
	if (!status)
		status = save(ctl, ciphertext, sizes.ciphertext, secret, sizes.secret);
	if (status)
		goto out;
	begin(ctl, &json);
	status = show_public(ctl, &json, "ciphertext", ciphertext, sizes.ciphertext);
	if (!status)
		show_fingerprint(ctl, &json, fingerprint, sizes.secret);
	show_route(ctl, &json, client);
	end(ctl, &json);
out:
	mlkemclient_wipe(secret, sizeof(secret));
	mlkemclient_free(client);
	return status;
}

static int
decaps_with(struct ctl *ctl, struct mlkemclient *client,
    const struct mlkemclient_sizes *sizes, const struct io_input *key)
{
	uint8_t secret[MLKEMCLIENT_MAX_SECRET];
	char fingerprint[IO_FINGERPRINT_TEXT];
	struct io_input in;
	struct json json;
	int status, error;

	status = io_read(ctl, ctl->in_path,
	    &(struct io_wanted){
		.what = "ciphertext share", .option = "--in", .len = sizes->ciphertext},
	    &in);
	if (status)
		return status;
	error = mlkemclient_decaps_with(client, ctl->alg, key->bytes, key->len,
	    in.bytes, in.len, secret, sizes->secret);
	if (error)
		return ctl_client_fail(ctl, client, error, "decapsulation");
	status = io_fingerprint(ctl, secret, sizes->secret, fingerprint);
	if (!status)
		status = save(ctl, NULL, 0, secret, sizes->secret);
	mlkemclient_wipe(secret, sizeof(secret));
	if (status)
		return status;
	begin(ctl, &json);
	show_fingerprint(ctl, &json, fingerprint, sizes->secret);
	show_route(ctl, &json, client);
	end(ctl, &json);
	return CTL_OK;
}

int
ctl_decaps(struct ctl *ctl)
{
	struct mlkemclient_sizes sizes;
	struct mlkemclient *client = NULL;
	struct io_input key;
	int status;

	if (!ctl->key_path)
		return ctl_fail(ctl, CTL_USAGE,
		    "decaps takes a private key that was exported: --key FILE. A key "
		    "that stays in the daemon dies with its connection, so `mlkemctl "
		    "keygen` waits for the ciphertext itself. To export one, `mlkemctl "
		    "keygen --export FILE`, where mlkemd.conf has `export-private-keys "
		    "= yes` in section [kem]");
	if (strcmp(ctl->key_path, "-") == 0)
		return ctl_fail(ctl, CTL_USAGE,
		    "--key takes the name of a file; standard input is for the "
		    "ciphertext share");
	if (mlkemclient_get_sizes(ctl->alg, &sizes))
		return ctl_fail(ctl, CTL_FAILED, "no sizes for this algorithm");
	status = check_paths(ctl);
	if (status)
		return status;
	status = io_read(ctl, ctl->key_path,
	    &(struct io_wanted){.what = "private key",
		.option = "--key",
		.len = sizes.private_key,
		.secret = true},
	    &key);
	if (!status)
		status = ctl_client_new(ctl, false, &client);
	if (!status)
		status = decaps_with(ctl, client, &sizes, &key);
	mlkemclient_wipe(&key, sizeof(key));
	mlkemclient_free(client);
	return status;
}
