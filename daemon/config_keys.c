/* SPDX-License-Identifier: Apache-2.0 */
#include "config_keys.h"

#include <string.h>

#define ROW(section_, name_, type_, field, min_, max_, initial_, allowed_, fixed_) \
 {                                                                                 \
  .section = section_, .name = name_, .type = type_,                               \
  .offset = offsetof(struct config, field), .min = min_, .max = max_,              \
  .initial = initial_, .allowed = allowed_, .fixed = fixed_                        \
 }
#define KEY(...)   ROW(__VA_ARGS__, false)
#define FIXED(...) ROW(__VA_ARGS__, true)

#define SECOND_MS 1000u
#define SECOND_US 1000000u
#define KIB       1024u

#define IDS                                                        \
 "names or ids, separated by commas; ?name if it need not exist; " \
 "an empty value clears the list"

/*
 * The initial users are completed with the daemon's own uid by config.c. A slab holds at
 * least the largest frame in its input part (3/4) and the largest reply in the rest.
 */
const struct config_key config_keys[] = {
    FIXED("socket", "path", CONFIG_PATH, path, 1, 107, CONFIG_RUN_DIR "/mlkemd.sock",
	"an absolute path of at most 107 bytes"),
    FIXED("socket", "control-path", CONFIG_PATH, control_path, 1, 107,
	CONFIG_RUN_DIR "/control.sock", "an absolute path of at most 107 bytes"),
    FIXED("socket", "mode", CONFIG_MODE, mode, 0, 0777, "0666",
	"an octal mode, 0000 to 0777"),
    FIXED("socket", "group", CONFIG_GROUP, group, 0, 0, "",
	"a group's name or number; empty: the daemon's own"),

    KEY("access", "allow-users", CONFIG_USERS, allow_users, 0, 0, "0", IDS),
    KEY("access", "allow-groups", CONFIG_GROUPS, allow_groups, 0, 0, "?mlkemd", IDS),

    FIXED("kem", "backend", CONFIG_BACKEND, backend, 0, 0, "auto",
	"auto, or the name of a backend: avx512, avx2 or generic"),
    KEY("kem", "export-private-keys", CONFIG_BOOL, export_private, 0, 0, "no",
	"yes or no"),
    KEY("kem", "pairwise-check", CONFIG_PAIRWISE, pairwise_check, 0, 0, "off",
	"off or pool"),

    KEY("pool", "enabled", CONFIG_BOOL, pool_enabled, 0, 0, "yes", "yes or no"),
    KEY("pool", "hybrid", CONFIG_NUMBER, pool.high[KEYPOOL_HYBRID], 0, 65536, "1024",
	"0 to 65536 key pairs"),
    KEY("pool", "mlkem768", CONFIG_NUMBER, pool.high[KEYPOOL_MLKEM768], 0, 65536, "256",
	"0 to 65536 key pairs"),
    KEY("pool", "x25519", CONFIG_NUMBER, pool.high[KEYPOOL_X25519], 0, 65536, "1024",
	"0 to 65536 ephemerals"),
    KEY("pool", "low-water", CONFIG_PERCENT, pool.low_percent, 0, 100, "50%",
	"0% to 100%; the sign may be left out"),
    KEY("pool", "max-age", CONFIG_MS, pool.max_age_ms, SECOND_MS, 3600 * SECOND_MS,
	"30s", "1s to 1h"),

    KEY("limits", "max-connections", CONFIG_NUMBER, max_connections, 1, 65536, "1024",
	"1 to 65536 connections"),
    FIXED("limits", "max-handles", CONFIG_NUMBER, max_handles, 1, 65536, "1024",
	"1 to 65536 private keys"),
    KEY("limits", "user-share", CONFIG_PERCENT, user_share, 1, 100, "50%",
	"1% to 100%; the sign may be left out"),
    KEY("limits", "handle-lifetime", CONFIG_MS, handle_lifetime_ms, 100,
	3600 * SECOND_MS, "60s", "100ms to 1h"),
    KEY("limits", "default-timeout", CONFIG_US, default_timeout_us, 1000,
	60 * SECOND_US, "1s", "1ms to 1m"),
    KEY("limits", "hello-timeout", CONFIG_MS, hello_timeout_ms, 10, 60 * SECOND_MS,
	"1s", "10ms to 1m"),
    KEY("limits", "frame-timeout", CONFIG_MS, frame_timeout_ms, 100, 600 * SECOND_MS,
	"10s", "100ms to 10m"),
    KEY("limits", "drain-timeout", CONFIG_MS, drain_timeout_ms, 0, 600 * SECOND_MS,
	"2s", "0s to 10m"),
    FIXED("limits", "buffers", CONFIG_BYTES, buffer_bytes, 1536 * KIB, 1024 * KIB * KIB,
	"2560K", "1536K to 1G"),

    FIXED("metrics", "listen", CONFIG_LOOPBACK, metrics_listen, 0, 64, "",
	"a loopback address and a port of 1 to 65535, such as 127.0.0.1:9768 or "
	"[::1]:9768, or empty for none"),
    FIXED("metrics", "path", CONFIG_OPT_PATH, metrics_path, 0, 107, "",
	"an absolute path of at most 107 bytes, or empty for none"),
    FIXED("metrics", "mode", CONFIG_MODE, metrics_mode, 0, 0777, "0660",
	"an octal mode, 0000 to 0777"),

    FIXED("daemon", "shards", CONFIG_SHARDS, shards, 1, 64, "auto",
	"auto, or 1 to 64 threads"),
    FIXED("daemon", "secret-memory", CONFIG_SECMEM, secret_memory, 0, 0, "prefer",
	"require, prefer or off"),
    FIXED("daemon", "sandbox", CONFIG_SANDBOX, sandbox, 0, 0, "prefer",
	"require, prefer or off"),
    KEY("daemon", "slow-request", CONFIG_US, slow_request_us, 0, 60 * SECOND_US,
	"100ms", "0s (none) to 1m"),
    FIXED("daemon", "busy-poll", CONFIG_BOOL, busy_poll, 0, 0, "yes", "yes or no"),
    KEY("daemon", "log-level", CONFIG_LEVEL, log_level, 0, 7, "info",
	"emerg, alert, crit, err, warning, notice, info or debug"),
};

const size_t config_n_keys = sizeof(config_keys) / sizeof(config_keys[0]);

const struct config_key *
config_key_find(const char *section, const char *name)
{
	for (size_t i = 0; i < config_n_keys; i++) {
		if (!strcmp(config_keys[i].section, section) &&
		    !strcmp(config_keys[i].name, name))
			return &config_keys[i];
	}
	return NULL;
}
