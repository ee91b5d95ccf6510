/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of sys/queue.h for cppcheck, which reads no system header. */
#ifndef MLKEMD_CPPCHECK_H
#define MLKEMD_CPPCHECK_H

#define TAILQ_FOREACH(var, head, field) \
 for ((var) = (head)->tqh_first; (var); (var) = (var)->field.tqe_next)
#define STAILQ_FOREACH(var, head, field) \
 for ((var) = (head)->stqh_first; (var); (var) = (var)->field.stqe_next)

#endif
