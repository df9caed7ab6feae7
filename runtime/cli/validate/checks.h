/* SPDX-License-Identifier: MIT */
/* All checks, by suite; suites.c says what each proves. */
#ifndef CLI_VALIDATE_CHECKS_H
#define CLI_VALIDATE_CHECKS_H

#include "suites.h"

void check_link_present(const struct subject *s, struct finding *f);
void check_link_width(const struct subject *s, struct finding *f);
void check_link_speed(const struct subject *s, struct finding *f);
void check_link_errors(const struct subject *s, struct finding *f);

void check_device_state(const struct subject *s, struct finding *f);
void check_device_heartbeat(const struct subject *s, struct finding *f);
void check_device_lookups(const struct subject *s, struct finding *f);

void check_buffers(const struct subject *s, struct finding *f);
void check_copies(const struct subject *s, struct finding *f);
void check_registered(const struct subject *s, struct finding *f);
void check_dma_errors(const struct subject *s, struct finding *f);

void check_memory_patterns(const struct subject *s, struct finding *f);
void check_memory_addresses(const struct subject *s, struct finding *f);
void check_memory_march(const struct subject *s, struct finding *f);
void check_memory_errors(const struct subject *s, struct finding *f);

void check_numeric_lookups(const struct subject *s, struct finding *f);
void check_numeric_updates(const struct subject *s, struct finding *f);
void check_numeric_reference(const struct subject *s, struct finding *f);

void check_throughput_rows(const struct subject *s, struct finding *f);

/* The rest is there only in builds that have devices of the kernel driver. */
void check_device_commands(const struct subject *s, struct finding *f);

void check_interrupt_vectors(const struct subject *s, struct finding *f);
void check_interrupt_silence(const struct subject *s, struct finding *f);
void check_interrupt_coalescing(const struct subject *s, struct finding *f);
void check_interrupt_sleep(const struct subject *s, struct finding *f);

void check_dma_transfers(const struct subject *s, struct finding *f);
void check_dma_userptr(const struct subject *s, struct finding *f);
void check_dma_shared(const struct subject *s, struct finding *f);
void check_dma_regions(const struct subject *s, struct finding *f);

void check_fence_order(const struct subject *s, struct finding *f);
void check_fence_signal(const struct subject *s, struct finding *f);
void check_fence_error(const struct subject *s, struct finding *f);

void check_reset_queue(const struct subject *s, struct finding *f);
void check_reset_engine(const struct subject *s, struct finding *f);
void check_reset_function(const struct subject *s, struct finding *f);

#endif
