/* SPDX-License-Identifier: Apache-2.0 */
/* Rings: lists whose links are embedded in what they hold, with a head that is a link, too. */
#ifndef MOON_BASE_LIST_H
#define MOON_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* A link, or the head of a ring. */
struct moon_list {
    struct moon_list *previous, *next;
};

/* What embeds `member` (a link, a table's or heap's node), from a pointer to that member. */
#define MOON_HOLDER(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

static inline void moon_list_open(struct moon_list *head) {
    head->previous = head->next = head;
}

static inline bool moon_list_empty(const struct moon_list *head) {
    return head->next == head;
}

/* Adds a link, which is in no ring, as the last one. */
static inline void moon_list_add(struct moon_list *head, struct moon_list *link) {
    link->previous = head->previous;
    link->next = head;
    head->previous->next = link;
    head->previous = link;
}

static inline void moon_list_remove(struct moon_list *link) {
    link->previous->next = link->next;
    link->next->previous = link->previous;
    link->previous = link->next = NULL;
}

/* Takes a link out of the ring that it is in, if any: zeroed, or after it was removed, it is in none. */
static inline void moon_list_leave(struct moon_list *link) {
    if (link->next)
        moon_list_remove(link);
}

/* Makes a link the last one of that ring, wherever it was. */
static inline void moon_list_move(struct moon_list *head, struct moon_list *link) {
    moon_list_leave(link);
    moon_list_add(head, link);
}

#endif
