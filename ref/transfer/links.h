/* SPDX-License-Identifier: Apache-2.0 */
/* Links that are in a ring or in none: zeroed, or after leaving, they are in none. */
#ifndef MOON_TRANSFER_LINKS_H
#define MOON_TRANSFER_LINKS_H

#include "ref/base/list.h"

/* Takes the link out of the ring that it is in, if any. */
static inline void moon_link_leave(struct moon_list *link) {
    if (link->next)
        moon_list_remove(link);
}

/* Makes it the last one of that ring, wherever it was. */
static inline void moon_link_move(struct moon_list *head, struct moon_list *link) {
    moon_link_leave(link);
    moon_list_add(head, link);
}

#endif
