/* SPDX-License-Identifier: MIT */
/* A sample with its rates as JSON. */
#ifndef CLI_TOP_DOCUMENTS_H
#define CLI_TOP_DOCUMENTS_H

#include "../frame/output.h"
#include "rates.h"

struct json_object *top_document(const struct output *out, const struct rates *rates);

#endif
