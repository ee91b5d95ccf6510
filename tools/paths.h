/* SPDX-License-Identifier: Apache-2.0 */
/*
 * paths.h: whether the files of a command line are as many as its options. A key that is
 * written over itself, or over the secret just made, is lost for good: so that is
 * refused before anything is opened.
 */
#ifndef MLKEMCTL_PATHS_H
#define MLKEMCTL_PATHS_H

#include "ctl.h"

/* Returns CTL_OK, or CTL_USAGE after naming the two options that name one file. */
int paths_check(const struct ctl *ctl);

#endif
