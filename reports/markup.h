/* SPDX-License-Identifier: Apache-2.0 */
/* Text inside XML and HTML. */
#ifndef MOON_REPORTS_MARKUP_H
#define MOON_REPORTS_MARKUP_H

#include "ref/base/text.h"

/* Appends `text` so that it may stand in content and in quoted attributes of XML and HTML. What XML can't hold (control
 * characters, lone surrogates, bytes that are no UTF-8) becomes U+FFFD. */
void moon_markup_escape(struct moon_text *out, const char *text);

#endif
