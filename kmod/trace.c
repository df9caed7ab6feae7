// SPDX-License-Identifier: GPL-2.0-only
/*
 * The one file that defines the tracepoints which trace.h declares; every other file only calls
 * them. The kernel's macros make the definitions where CREATE_TRACE_POINTS is set before the
 * header is included, and that must happen exactly once in a module. The tracepoints live as long
 * as the module. They copy their arguments and take no lock, so that they may be called in
 * interrupts.
 */
#define CREATE_TRACE_POINTS
#include "driver.h"
#include "trace.h"
