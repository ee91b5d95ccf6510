/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_groups.h: whether OpenSSL will know the names of a list of groups. One name that
 * it does not know makes it drop the whole list, the post-quantum group included.
 */
#ifndef MLKEMCTL_CONF_GROUPS_H
#define MLKEMCTL_CONF_GROUPS_H

#include "ctl.h"

/*
 * own is the machine's openssl.cnf ("" if there is none), whose providers may have groups
 * of their own. Returns CTL_OK, or CTL_USAGE after naming what is wrong.
 */
int conf_groups_check(const struct ctl *ctl, const char *groups, const char *own);

#endif
