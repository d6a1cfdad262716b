/* SPDX-License-Identifier: Apache-2.0 */
/* The version of mooncheck, of all its programs. */
#ifndef MOON_BASE_VERSION_H
#define MOON_BASE_VERSION_H

#define MOON_VERSION "0.1.0"

#endif
