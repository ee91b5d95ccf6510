/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor.h"

/* Proxies as Debian runs them: the user of the processes that make handshakes. */
static const struct proxy {
	const char *program, *user;
} proxies[] = {
    {"nginx", "www-data"},
    {"haproxy", "haproxy"},
    {"stunnel4", "stunnel4"},
    {"hitch", "_hitch"},
};
#define N_PROXIES (sizeof(proxies) / sizeof(proxies[0]))

/* What becomes of a Hello of that user's, asked by a child that is that user. */
static int
ask_as(struct doctor *doctor, const struct passwd *user)
{
	struct mlkemclient *client = NULL;
	pid_t pid = fork();
	int status, error;

	if (pid == 0) {
		if (setgroups(0, NULL) < 0 || setgid(user->pw_gid) < 0 ||
		    setuid(user->pw_uid) < 0)
			_exit(100);
		error = ctl_client_new(doctor->ctl, true, &client);
		if (!error)
			error = mlkemclient_ping(client);
		_exit(error < 0 && error > -100 ? -error : error != 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 100;
	return WEXITSTATUS(status);
}

static void
look_at_user(struct doctor *doctor, const struct proxy *proxy)
{
	/* cppcheck-suppress getpwnamCalled ; one thread */
	const struct passwd *user = getpwnam(proxy->user);
	char what[32], remedy[160];
	int answer;

	if (!user)
		return; /* it is not installed */
	snprintf(what, sizeof(what), "user %s", proxy->user);
	answer = ask_as(doctor, user);
	if (answer == 0) {
		doctor_say(doctor, FINDING_GOOD, what, NULL, "%s's may come in",
		    proxy->program);
		return;
	}
	snprintf(remedy, sizeof(remedy),
	    answer == -MLKEMCLIENT_E_DENIED
		? "add `allow-users = %s` under [access] of /etc/mlkemd/mlkemd.conf "
		  "and run `mlkemctl reload`, if %s is to use it"
		: "as user %s: mlkemctl ping tells why (for %s)",
	    proxy->user, proxy->program);
	doctor_say(doctor, FINDING_WARN, what, remedy, "%s's may not come in%s",
	    proxy->program, answer == -MLKEMCLIENT_E_DENIED ? ": not on the list" : "");
}

void
doctor_look_at_users(struct doctor *doctor)
{
	if (!doctor->answers)
		return;
	if (geteuid() != 0) {
		doctor_say(doctor, FINDING_NOTE, "users", "run it as root",
		    "whether proxies may come in only root can try");
		return;
	}
	for (size_t i = 0; i < N_PROXIES; i++)
		look_at_user(doctor, &proxies[i]);
}

/* Whether a process has a file of that name mapped. */
static bool
process_maps(const char *pid, const char *name)
{
	char path[300], *line = NULL;
	size_t size = 0;
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/maps", pid);
	file = fopen(path, "re");
	while (file && !found && getline(&line, &size, file) > 0)
		found = strstr(line, name) != NULL;
	free(line);
	if (file)
		fclose(file);
	return found;
}

static void
process_name(const char *pid, char *name, size_t size)
{
	char path[300];
	FILE *file;

	name[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	file = fopen(path, "re");
	if (file && fgets(name, (int)size, file))
		name[strcspn(name, "\n")] = '\0';
	if (file)
		fclose(file);
}

static bool
is_pid(const struct dirent *entry)
{
	return entry->d_name[strspn(entry->d_name, "0123456789")] == '\0';
}

/* Running processes of that name, and how many of them have the provider. */
static void
count_processes(const char *program, unsigned *n, unsigned *n_loaded)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	char name[64];

	*n = *n_loaded = 0;
	/* cppcheck-suppress readdirCalled ; its own stream */
	while (dir && (entry = readdir(dir))) {
		if (!is_pid(entry))
			continue;
		process_name(entry->d_name, name, sizeof(name));
		if (strcmp(name, program) != 0)
			continue;
		++*n;
		*n_loaded += process_maps(entry->d_name, "/mlkemd.so");
	}
	if (dir)
		closedir(dir);
}

void
doctor_look_at_provider(struct doctor *doctor)
{
	unsigned n, n_loaded, n_running = 0;
	char what[32];

	if (access(DOCTOR_MODULES_DIR "/mlkemd.so", R_OK) < 0)
		doctor_say(doctor, FINDING_NOTE, "provider",
		    "apt install openssl-provider-mlkemd, for programs that use "
		    "OpenSSL",
		    "%s: %s", DOCTOR_MODULES_DIR "/mlkemd.so", strerror(errno));
	else
		doctor_say(doctor, FINDING_GOOD, "provider", NULL, "%s",
		    DOCTOR_MODULES_DIR "/mlkemd.so");
	for (size_t i = 0; i < N_PROXIES; i++) {
		count_processes(proxies[i].program, &n, &n_loaded);
		if (!n)
			continue;
		n_running++;
		snprintf(what, sizeof(what), "%s", proxies[i].program);
		if (n_loaded)
			doctor_say(doctor, FINDING_GOOD, what, NULL,
			    "%u of its %u processes have the provider loaded", n_loaded,
			    n);
		else
			doctor_say(doctor, FINDING_WARN, what,
			    "docs/proxies.md has its lines; then restart it",
			    "it runs without the provider%s",
			    geteuid() ? " (as far as this user can see)" : "");
	}
	if (!n_running)
		doctor_say(doctor, FINDING_NOTE, "proxies", NULL,
		    "no nginx, haproxy, stunnel4 or hitch is running");
}
