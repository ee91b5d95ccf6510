/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "doctor.h"
#include "kem/kem.h"

/* Its number on all architectures; the headers of some do not have it. */
#define MEMFD_SECRET_NUMBER 447

/* Whether the first processor's flags have this word. */
static bool
cpu_has(const char *flag)
{
	FILE *file = fopen("/proc/cpuinfo", "re");
	size_t len = strlen(flag), size = 0;
	char *line = NULL, *at;
	bool found = false;

	while (file && !found && getline(&line, &size, file) > 0) {
		if (strncmp(line, "flags", 5) != 0)
			continue;
		for (at = line; !found && (at = strstr(at, flag)); at++)
			found = at[-1] == ' ' && (at[len] == ' ' || at[len] == '\n');
		break;
	}
	free(line);
	if (file)
		fclose(file);
	return found;
}

static const char *
best_backend(char *name, size_t size)
{
	struct kem *kem = NULL;

	snprintf(name, size, "?");
	if (kem_open(&kem, NULL) == 0)
		snprintf(name, size, "%s", kem_backend_name(kem));
	kem_free(kem);
	return name;
}

void
doctor_look_at_cpu(struct doctor *doctor)
{
	static const char *const needed[] = {"avx512f", "avx512bw", "avx512dq",
	    "avx512vl", "avx512vbmi", "avx512_vbmi2", "avx512ifma"};
	char best[32], missing[128] = "";
	size_t n = 0;

	best_backend(best, sizeof(best));
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		if (!cpu_has(needed[i]) && n < sizeof(missing))
			n += (size_t)snprintf(
			    missing + n, sizeof(missing) - n, " %s", needed[i]);
	}
	if (strcmp(best, "avx512") == 0)
		doctor_say(doctor, FINDING_GOOD, "processor", NULL,
		    "AVX-512 with IFMA and VBMI2: eight lanes");
	else if (cpu_has("avx512f"))
		doctor_say(doctor, FINDING_NOTE, "processor", NULL,
		    "AVX-512, but without%s: backend %s is the best here", missing,
		    best);
	else
		doctor_say(doctor, FINDING_NOTE, "processor", NULL,
		    "no AVX-512: backend %s is the best here", best);
	if (doctor->answers && strcmp(doctor->info.backend, best) != 0)
		doctor_say(doctor, FINDING_WARN, "backend",
		    "set `backend = auto` under [kem], unset MLKEMD_BACKEND, restart",
		    "the daemon runs %s; this processor can run %s",
		    doctor->info.backend, best);
}

/* Whether this kernel gives memory that even root can't read. */
static bool
has_secret_memory(void)
{
	long fd = syscall(MEMFD_SECRET_NUMBER, O_CLOEXEC);

	if (fd < 0)
		return false;
	close((int)fd);
	return true;
}

void
doctor_look_at_memory(struct doctor *doctor)
{
	const char *mode = doctor->info.secret_memory;

	if (!doctor->answers)
		return;
	if (strcmp(mode, "memfd_secret") == 0)
		doctor_say(doctor, FINDING_GOOD, "secret memory", NULL,
		    "memfd_secret: nobody else can read it, root included");
	else if (strcmp(mode, "mlock") == 0 && has_secret_memory())
		doctor_say(doctor, FINDING_WARN, "secret memory",
		    "allow memfd_secret in the unit's SystemCallFilter, and restart",
		    "mlock, although this kernel has memfd_secret");
	else if (strcmp(mode, "mlock") == 0)
		doctor_say(doctor, FINDING_NOTE, "secret memory",
		    "for more: secretmem.enable=1 on the kernel's command line "
		    "(Linux 5.14 and later)",
		    "mlock: never swapped and never dumped");
	else
		doctor_say(doctor, FINDING_WARN, "secret memory",
		    "LimitMEMLOCK=8M in the unit (systemctl edit mlkemd), and restart",
		    "not locked: secrets may reach the swap");
}

void
doctor_look_at_socket(struct doctor *doctor)
{
	const char *path = doctor->ctl->socket_path;
	struct stat st;

	if (stat(path, &st) < 0) {
		doctor_say(doctor, FINDING_BAD, "socket",
		    errno == EACCES ? "a folder on the way is closed to this user"
				    : "systemctl start mlkemd (or --socket PATH)",
		    "%s: %s", path, strerror(errno));
		return;
	}
	if (!S_ISSOCK(st.st_mode))
		doctor_say(doctor, FINDING_BAD, "socket",
		    "remove it, and start mlkemd again", "%s is no socket", path);
	else if ((st.st_mode & 0777) == 0666)
		doctor_say(doctor, FINDING_GOOD, "socket", NULL,
		    "%s, mode 0666: the daemon decides by user who may come in", path);
	else
		doctor_say(doctor, FINDING_WARN, "socket",
		    "mode = 0666 under [socket]: HAProxy, stunnel and hitch drop their "
		    "groups, and the daemon decides by user anyway",
		    "%s has mode %04o", path, (unsigned)(st.st_mode & 07777));
}
