/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config_keys.h"

#define FILE_MAX_BYTES (256u * 1024u)

struct loader {
	struct config *config;
	bool may_resolve;
	char *error;
	size_t error_size;
};

/* Reads at most size bytes. Returns 0, or a positive errno; EFBIG if there are more. */
static int
file_read(int fd, char *text, size_t size, size_t *lenp)
{
	struct stat st;

	if (fstat(fd, &st))
		return errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
	for (;;) {
		ssize_t n = read(fd, text + *lenp, size - *lenp);

		if (!n)
			return 0;
		if (n < 0 && errno != EINTR)
			return errno;
		if (n > 0)
			*lenp += (size_t)n;
		if (*lenp == size)
			return EFBIG;
	}
}

/* The whole of a file. Returns 0, -ENOMEM, or a positive errno. */
static int
file_slurp(const char *path, char **textp, size_t *lenp)
{
	char *text;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err;

	if (fd < 0)
		return errno;
	*lenp = 0;
	text = malloc(FILE_MAX_BYTES + 1);
	err = text ? file_read(fd, text, FILE_MAX_BYTES + 1, lenp) : -ENOMEM;
	close(fd);
	if (err) {
		free(text);
		return err;
	}
	*textp = text;
	return 0;
}

static int
loader_file(struct loader *loader, const char *path, bool required)
{
	char *text = NULL;
	size_t len = 0;
	int r = file_slurp(path, &text, &len);

	if ((r == ENOENT || r == ENOTDIR) && !required)
		return 0;
	if (r > 0)
		return config_error(loader->error, loader->error_size,
		    "%s: %s; a readable file of at most %u bytes is allowed", path,
		    r == EINVAL || r == ENXIO ? "not a regular file" : strerror(r),
		    FILE_MAX_BYTES);
	if (r)
		return r;
	r = config_read_text(loader->config, path, text, len, loader->may_resolve,
	    loader->error, loader->error_size);
	free(text);
	return r;
}

static int
dir_select(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return entry->d_name[0] != '.' && len > 5 &&
	       !strcmp(entry->d_name + len - 5, ".conf");
}

/* By byte value, whatever the locale. */
static int
dir_compare(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int
loader_dir(struct loader *loader, const char *file)
{
	const char *slash = strrchr(file, '/');
	int dir_len = slash ? (int)(slash - file) + 1 : 0, n, r = 0;
	struct dirent **entries;
	char *dir, *path;

	if (asprintf(&dir, "%.*sconf.d", dir_len, file) < 0)
		return -ENOMEM;
	n = scandir(dir, &entries, dir_select, dir_compare);
	if (n < 0) {
		if (errno != ENOENT && errno != ENOTDIR)
			r = config_error(loader->error, loader->error_size,
			    "%s: %s; a readable directory is allowed", dir,
			    strerror(errno));
		free(dir);
		return r;
	}
	for (int i = 0; i < n; i++) {
		if (!r && asprintf(&path, "%s/%s", dir, entries[i]->d_name) < 0)
			r = -ENOMEM;
		else if (!r) {
			r = loader_file(loader, path, true);
			free(path);
		}
		free(entries[i]);
	}
	free(entries);
	free(dir);
	return r;
}

static int
loader_defaults(struct loader *loader)
{
	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];
		int r = config_set(loader->config, key, key->initial, "default", true,
		    loader->error, loader->error_size);

		if (!r && key->type == CONFIG_USERS && geteuid()) {
			char self[16];

			snprintf(self, sizeof(self), "%u", geteuid());
			r = config_set(loader->config, key, self, "default", true,
			    loader->error, loader->error_size);
		}
		if (r)
			return r;
	}
	return 0;
}

static int
loader_flag(struct loader *loader, const struct config_flag *flag)
{
	const struct config_key *key = NULL;
	const char *dot = strchr(flag->key, '.');
	char section[32];

	if (dot && (size_t)(dot - flag->key) < sizeof(section)) {
		snprintf(section, sizeof(section), "%.*s", (int)(dot - flag->key),
		    flag->key);
		key = config_key_find(section, dot + 1);
	}
	if (!key)
		return config_error(loader->error, loader->error_size,
		    "%s: %.80s: no such key; mlkemd --print-config shows them all",
		    flag->flag, flag->key);
	return config_set(loader->config, key, flag->value, flag->flag,
	    loader->may_resolve, loader->error, loader->error_size);
}

static int
loader_run(struct loader *loader, const struct config_sources *sources)
{
	struct config *config = loader->config;
	int r = loader_defaults(loader);

	if (!r)
		r = loader_file(loader, sources->file, sources->file_required);
	if (!r)
		r = loader_dir(loader, sources->file);
	for (size_t i = 0; !r && i < sources->n_flags; i++)
		r = loader_flag(loader, &sources->flags[i]);
	if (!r && !strcmp(config->path, config->control_path))
		r = config_error(loader->error, loader->error_size,
		    "%s: socket.control-path: another path than socket.path is allowed",
		    config_origin(config, "socket.control-path"));
	return r;
}

int
config_load(struct config **configp, const struct config_sources *sources,
    const struct config *running, char *error, size_t error_size)
{
	struct config *config = calloc(1, sizeof(*config));
	struct loader loader = {.config = config,
	    .may_resolve = !running,
	    .error = error,
	    .error_size = error_size};
	int r = config ? 0 : -ENOMEM;

	if (r)
		return r;
	config->texts = calloc(config_n_keys, sizeof(*config->texts));
	if (!config->texts)
		r = -ENOMEM;
	if (!r && running)
		r = config_names_copy(config, running);
	if (!r)
		r = loader_run(&loader, sources);
	if (r) {
		config_free(config);
		return r;
	}
	*configp = config;
	return 0;
}

struct config *
config_free(struct config *config)
{
	if (!config)
		return NULL;
	for (size_t i = 0; i < config_n_keys; i++) {
		config_key_clear(&config_keys[i], config);
		if (config->texts) {
			free(config->texts[i].value);
			free(config->texts[i].origin);
		}
	}
	free(config->texts);
	config_names_free(config);
	free(config);
	return NULL;
}

void
config_print(const struct config *config, FILE *out)
{
	const char *section = "";

	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];
		const struct config_text *text = &config->texts[i];

		if (strcmp(key->section, section))
			fprintf(out, "%s[%s]\n", *section ? "\n" : "", key->section);
		section = key->section;
		/* A list begins with the built-in one unless it is cleared. */
		if (key->type == CONFIG_USERS || key->type == CONFIG_GROUPS)
			fprintf(out, "%s =\n", key->name);
		fprintf(out, "%s = %s  # %s\n", key->name, text->value, text->origin);
	}
}

const char *
config_origin(const struct config *config, const char *key)
{
	for (size_t i = 0; i < config_n_keys; i++) {
		size_t len = strlen(config_keys[i].section);

		if (!strncmp(config_keys[i].section, key, len) && key[len] == '.' &&
		    !strcmp(config_keys[i].name, key + len + 1))
			return config->texts[i].origin;
	}
	return NULL;
}

int
config_keep_fixed(struct config *config, const struct config *running, char *changed,
    size_t changed_size)
{
	size_t used = 0;

	changed[0] = '\0';
	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];

		if (!key->fixed ||
		    !strcmp(config->texts[i].value, running->texts[i].value))
			continue;
		int r = config_key_copy(key, config, running);
		if (r)
			return r;
		char *value = strdup(running->texts[i].value);
		if (!value)
			return -ENOMEM;
		free(config->texts[i].value);
		config->texts[i].value = value;
		if (used < changed_size)
			used += (size_t)snprintf(changed + used, changed_size - used,
			    "%s%s.%s", used ? ", " : "", key->section, key->name);
	}
	return 0;
}
