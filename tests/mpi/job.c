// SPDX-License-Identifier: MIT
/*
 * A host of a job that trains, saves its model half way and at the end, and fails as it is told. It goes on
 * from the checkpoint that it finds, so that a job which failed is started again over any number of hosts.
 *
 * usage: job TRANSPORT DEVICE DEADLINE STEPS FOLDER SAID [FAULT RANK STEP PHASE[:NUMBER] [COMMAND]]
 *
 * TRANSPORT is alone, openmpi, mpich or mpi. The fault is one of fault.h, in the exchange of this phase and
 * step, which counts from where this process began; step 0 is any. FOLDER is - for a job without checkpoints. A line
 * goes to the file SAID: "rows DIGEST after N steps on H hosts", or of each rank
 * "rank R of N: CODE after S s: " and the sentence, with the seconds that the failed call took.
 */
#include <fcntl.h>
#include <stdio.h>

#include "fault.h"
#include "hosts_help.h"

#define HALF_WAY 4
#define SECOND_NS 1000000000ull

struct job {
	struct run run;
	struct fault fault;
	struct embeng_group *group;
	struct embeng *e;
	const char *transport, *device, *folder, *said;
	uint64_t deadline_ns, began_ns;
	uint32_t steps, rank, ranks;
};

/* One write to the file, so that lines of several ranks do not mix. */
static void say_line(const struct job *j, const char *line)
{
	const int fd = open(j->said, O_WRONLY | O_CREAT | O_APPEND, 0666);
	const ssize_t length = (ssize_t)strlen(line);

	if (fd < 0 || write(fd, line, (size_t)length) != length)
		_exit(4);
	close(fd);
}

static int say_failure(const struct job *j, int ret)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);
	char line[EMBENG_ERROR_TEXT + 80];

	embeng_last_error(&error);
	snprintf(line, sizeof(line), "rank %u of %u: %d after %.1f s: %s\n", j->rank, j->ranks, ret,
		 (double)(now_ns() - j->began_ns) / 1e9, error.text);
	say_line(j, line);
	return ret;
}

static int open_hosts(struct job *j, const struct embeng_model *model)
{
	const struct embeng_group_options options = EMBENG_INIT(embeng_group_options,
								.deadline_ns = j->deadline_ns);
	struct embeng_transport transport;
	int ret = embeng_group_transport(j->transport, &transport, NULL);

	if (ret)
		return ret;
	j->rank = transport.rank;
	j->ranks = transport.ranks;
	fault_wrap(&j->fault, &transport);
	ret = embeng_group_open(&transport, &options, &j->group, NULL);
	return ret ? ret : embeng_open_group(j->device, model, j->group, &j->e, NULL);
}

/* The features that are looked up for the digest: one for each table. */
static bool is_digested(int f)
{
	return f != RUN_SEQUENCE && (!f || run_tables[f] != run_tables[f - 1]);
}

/* All hosts look all rows up. The optimizer's slots show in the rows of the steps after them. */
static int digest_rows(struct embeng *e, uint64_t *digest)
{
	static float rooms[RUN_FEATURES][500 * 96];
	static int64_t ids[500];
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_INFERENCE, 0);
	struct embeng_output outputs[RUN_FEATURES];
	int ret = 0;

	for (int64_t i = 0; i < 500; i++)
		ids[i] = i;
	for (int f = 0; f < RUN_FEATURES && !ret; f++) {
		const int64_t rows = is_digested(f) ? run_rows[run_tables[f]] : 0;

		outputs[f] = (struct embeng_output){
			.data = rooms[f], .elements = (size_t)(rows * run_dims[run_tables[f]])};
		if (f == RUN_SEQUENCE)
			ret = embeng_batch_ragged(b, f, EMBENG_I64, ids, 0, ids, 0, NULL, 0);
		else
			ret = embeng_batch_dense(b, f, EMBENG_I64, ids, (size_t)rows, &rows, 1);
	}
	ret = ret ? ret : embeng_lookup(e, b, outputs, RUN_FEATURES, -1);
	for (int f = 0; f < RUN_FEATURES && !ret; f++)
		*digest = run_digest(*digest, outputs[f].data, outputs[f].elements * sizeof(float));
	embeng_batch_free(b);
	return ret;
}

/* As run_train(), with the time at which each call that may fail began. */
static int train_steps(struct job *j, uint32_t first, uint32_t last)
{
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);
	struct embeng_batch *batches[RUN_REPLICAS_MOST];
	int ret = embeng_info(j->e, &info);

	for (uint32_t i = 0; i < info.replica_count; i++)
		batches[i] = embeng_batch_new(j->e, EMBENG_TRAIN, info.first_replica + i);
	for (uint32_t step = first; !ret && step <= last; step++) {
		for (uint32_t i = 0; !ret && i < info.replica_count; i++) {
			j->began_ns = now_ns();
			ret = run_enqueue(&j->run, j->e, batches[i], step, info.first_replica + i);
		}
		for (uint32_t i = 0; !ret && i < info.replica_count; i++) {
			j->began_ns = now_ns();
			ret = run_apply(&j->run, j->e, step, info.first_replica + i);
		}
	}
	for (uint32_t i = 0; i < info.replica_count; i++)
		embeng_batch_free(batches[i]);
	return ret;
}

/* Goes on from the checkpoint, if there is one. */
static int restore_steps(struct job *j)
{
	uint64_t step = 0;
	int ret;

	if (!strcmp(j->folder, "-"))
		return 0;
	j->began_ns = now_ns();
	ret = embeng_restore(j->e, j->folder, NULL);
	if (ret == -ENOENT)
		return 0;
	ret = ret ? ret : embeng_step(j->e, &step);
	j->run.before = (uint32_t)step;
	return ret;
}

static int run_job(struct job *j)
{
	int ret = restore_steps(j);
	uint32_t step = j->run.before;

	while (!ret && step < j->steps) {
		const uint32_t to = step < HALF_WAY ? HALF_WAY : j->steps;

		ret = train_steps(j, step + 1, to);
		step = to;
		if (ret || !strcmp(j->folder, "-"))
			continue;
		j->began_ns = now_ns();
		ret = embeng_save(j->e, j->folder, NULL);
	}
	return ret;
}

static int do_job(struct job *j)
{
	struct embeng_model *model = run_model(&j->run);
	uint64_t digest = 1;
	char line[120];
	int ret;

	j->began_ns = now_ns();
	if (!strcmp(j->transport, "alone"))
		ret = embeng_open(j->device, model, &j->e, NULL);
	else
		ret = open_hosts(j, model);
	ret = ret ? ret : run_job(j);
	ret = ret ? ret : digest_rows(j->e, &digest);
	if (ret)
		say_failure(j, ret);
	embeng_close(j->e);
	embeng_group_close(j->group);
	embeng_model_free(model);
	if (ret || j->rank)
		return ret;
	snprintf(line, sizeof(line), "rows %016llx after %u steps on %u hosts\n",
		 (unsigned long long)digest, j->steps, j->ranks);
	say_line(j, line);
	return 0;
}

/* The fault's words, if it is this rank's. */
static void read_fault(struct fault *f, char **words, int count)
{
	char *number = strchr(words[3], ':');

	f->which = number ? (uint32_t)strtoul(number + 1, NULL, 10) : 1;
	if (number)
		*number = 0;
	f->kind = words[0];
	f->step = strtoull(words[2], NULL, 10);
	f->phase = words[3];
	f->command = count > 4 ? words[4] : "true";
}

/* The launchers tell each process its rank before MPI does. */
static bool is_rank(const char *rank)
{
	const char *own = getenv("OMPI_COMM_WORLD_RANK");

	own = own ? own : getenv("PMI_RANK");
	return own && !strcmp(own, rank);
}

int main(int argc, char **argv)
{
	static struct job j;

	if (argc < 7)
		return 2;
	j = (struct job){
		.transport = argv[1],
		.device = argv[2],
		.deadline_ns = strtoull(argv[3], NULL, 10) * SECOND_NS,
		.steps = (uint32_t)strtoul(argv[4], NULL, 10),
		.folder = argv[5],
		.said = argv[6],
		.ranks = 1,
		.run = {.optimizer = embeng_adam_corrected(0.01f),
			.combiner = EMBENG_MEAN,
			.weights = 1,
			.replicas = 4},
	};
	if (j.steps > RUN_STEPS_MOST)
		return 2;
	if (argc >= 11 && is_rank(argv[8]))
		read_fault(&j.fault, argv + 7, argc - 7);
	if (!do_job(&j))
		return 0;
	/* A launcher kills all others as soon as one fails: let them say their lines, too. */
	sleep(2);
	return 3;
}
