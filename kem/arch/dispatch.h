/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * dispatch.h: which backend to use. Asked once, by kem_open(); the answer is a pointer
 * to constant data, so that there is nothing to race for.
 */
#ifndef MLKEMD_KEM_DISPATCH_H
#define MLKEMD_KEM_DISPATCH_H

#include "../kem.h"

struct backend;

/*
 * backend_choose() takes the backend called name; if name is NULL the one that
 * MLKEMD_BACKEND names (not read in set-uid programs); if that is not set either, the
 * best one for this CPU. A name that is unknown, empty, or of a backend that can't run
 * here is an error: nobody shall measure another backend than the one asked for.
 * Returns 0, or KEM_FAIL_BACKEND with *backendp NULL.
 */
kem_must_check int backend_choose(const char *name, const struct backend **backendp);

#endif
