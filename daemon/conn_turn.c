/* SPDX-License-Identifier: Apache-2.0 */
/* Whose turn it is: users alternate, and within a user its connections. */
#include "conn_priv.h"
#include "kem/fault.h"

void
conn_turn_add(struct user *user, struct conn *conn)
{
	if (TAILQ_EMPTY(&user->ready))
		TAILQ_INSERT_TAIL(&user->table->ready, user, ready_link);
	TAILQ_INSERT_TAIL(&user->ready, conn, queue_link);
}

void
conn_turn_remove(struct user *user, struct conn *conn)
{
	TAILQ_REMOVE(&user->ready, conn, queue_link);
	if (TAILQ_EMPTY(&user->ready))
		TAILQ_REMOVE(&user->table->ready, user, ready_link);
}

struct conn *
conn_turn_next(const struct user_table *table)
{
	struct user *user = TAILQ_FIRST(&table->ready);

	return user ? TAILQ_FIRST(&user->ready) : NULL;
}

void
conn_turn_pass(struct user *user, struct conn *conn)
{
	TAILQ_REMOVE(&user->ready, conn, queue_link);
	TAILQ_INSERT_TAIL(&user->ready, conn, queue_link);
	if (fault("user-no-rotation"))
		return;
	TAILQ_REMOVE(&user->table->ready, user, ready_link);
	TAILQ_INSERT_TAIL(&user->table->ready, user, ready_link);
}
