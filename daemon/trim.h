/* SPDX-License-Identifier: Apache-2.0 */
/* trim.h: what only the start needed leaves memory. */
#ifndef MLKEMD_TRIM_H
#define MLKEMD_TRIM_H

/*
 * Gives the system back what parsing, the self-test, libcrypto and the filter have left
 * over: free heap, and the pages of code and constants. Those that are still needed come
 * back by themselves, from the page cache. Nothing depends on its success. Once, at
 * the end of the start; main only.
 */
void trim_after_start(void);

#endif
