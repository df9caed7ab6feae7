/* SPDX-License-Identifier: MIT */
/* What the commands of embeng checkpoint have in common. */
#ifndef CLI_CHECKPOINT_H
#define CLI_CHECKPOINT_H

#include "command.h"
#include "embeng.h"

int checkpoint_ls(int argc, char **argv);
int checkpoint_verify(int argc, char **argv);
int checkpoint_dump(int argc, char **argv);

/* An argp parser of one argument, DIR; its input is a const char *. */
error_t checkpoint_parse_dir(int key, char *arg, struct argp_state *state);

/* 0, or the exit code of a failure that is reported. */
int checkpoint_open(const struct output *out, const char *dir, struct embeng_checkpoint **c,
		    struct embeng_checkpoint_info *info);

/* "adagrad", "none" */
const char *checkpoint_optimizer(const struct embeng_table_config *table);

#endif
