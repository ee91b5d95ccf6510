/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox.h: after the start the process keeps the system calls that it needs and no
 * others (seccomp): no program, no process, no network, no debugger, no writing to files.
 * What only an intruder would call kills it; what a later libc might try is refused.
 */
#ifndef MLKEMD_SANDBOX_H
#define MLKEMD_SANDBOX_H

enum sandbox_policy { SANDBOX_PREFER, SANDBOX_REQUIRE, SANDBOX_OFF };

/*
 * No new privileges, no core, and nobody of the same user may look into the process (but
 * for a build for tests). Before anything else; harden.c.
 */
void sandbox_harden(void);

/*
 * Holds for all threads, and those that they start. Returns 0; SANDBOX_E_LEFT_OUT in a
 * build for tests, which is looked into; or a negative errno.
 */
enum { SANDBOX_E_LEFT_OUT = 1 };
__attribute__((warn_unused_result)) int sandbox_enter(void);

/* In a build for tests: does what MLKEMD_FAULT names as "sandbox-CALL". */
void sandbox_try(void);

#endif
