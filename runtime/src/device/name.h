/* SPDX-License-Identifier: MIT */
/*
 * Parsing names of devices: "soft:cores=4,memory=1G,variant=portable", "/dev/accel/accel0",
 * "pci:0000:01:00.0,path=validated", and the same behind "mpi:" for each host of a group.
 */
#ifndef EMBENG_NAME_H
#define EMBENG_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "embeng/hosts.h"

struct embeng_open_options;

enum name_kind {
	NAME_ANY, /* the first device behind the driver, else soft */
	NAME_SOFT,
	NAME_NODE,
	NAME_PCI,
};

/* How commands reach a device behind the driver. */
enum name_path { NAME_PATH_ANY, NAME_PATH_MAPPED, NAME_PATH_VALIDATED };

#define NAME_RECORD 1024  /* bytes of a path */
#define NAME_TABLE 64	  /* bytes of a table's name, with the end */
#define NAME_EXCHANGES 32 /* tables whose exchange a name may have */

/* The exchange of one table. */
struct name_exchange {
	char table[NAME_TABLE];
	enum embeng_exchange_kind kind;
};

struct name {
	enum name_kind kind;
	uint32_t cores;		  /* 0: as many as the machine has */
	uint64_t memory;	  /* 0: most of the machine's memory */
	char variant[16];	  /* "": the best for this machine */
	uint32_t fetch_rows;	  /* rows that are fetched ahead; 0: not given */
	uint32_t fetch_form;	  /* enum kernel_fetch, for lookups */
	bool fetch_default;	  /* tune files are not read */
	char record[NAME_RECORD]; /* NAME_SOFT: file for a recording; "": none */
	const char *fetch_source; /* where fetch_rows or fetch_default are from, a constant */
	char where[64];		  /* NAME_NODE: path of the node; NAME_PCI: "0000:01:00.0" */
	enum name_path path;
	char group[16];	   /* "mpi", "openmpi" or "mpich": a handle over all hosts; "": this one */
	uint32_t deadline; /* seconds that the group's exchanges may take; 0: its default */
	enum embeng_exchange_kind exchange; /* wanted for the tables of a group; 0: not given */
	enum embeng_sharding sharding;	    /* distribution of rows; MOD if not given */
	struct name_exchange exchanges[NAME_EXCHANGES]; /* those of single tables */
	size_t exchange_count;
};

/*
 * name_parse() - parse the name of a device
 * @text: the name; NULL: EMBENG_DEVICE from the environment, or any device if that is not set
 *
 * If there is no variant=, EMBENG_KERNEL in the environment names the kernel variant; without path=
 * it is EMBENG_PATH, without prefetch= EMBENG_PREFETCH, and without record= EMBENG_RECORD.
 * Return: 0, -EINVAL for a bad option, -ENODEV for a text that is no name of a device.
 */
int name_parse(const char *text, struct name *out);

/*
 * name_of_options() - the device that open options name
 *
 * An option takes precedence over the same one in the name, and over the environment. Options of
 * another kind of device than the name's are refused; one that may be any device takes those of the
 * kind that it turns out to be.
 * Return: 0, -EINVAL, -ERANGE, or as name_parse().
 */
int name_of_options(const struct embeng_open_options *options, struct name *out);

/* Takes EMBENG_PREFETCH from the environment, unless @name has a way to fetch. Return: 0, -EINVAL. */
int name_take_prefetch(struct name *name);

/* EMBENG_KERNEL from the environment; NULL if it is not set, for the best variant. */
const char *name_kernel(void);

#endif
