// SPDX-License-Identifier: MIT
/*
 * Saving and restoring a table with Adagrad's slot on one core, beside a copy of the same files
 * through the page cache, in turn; and the opening of it for serving, beside one of a tenth of
 * the rows. All that is written is synced, the copy, too. A program to run, not a test:
 *
 *   build/tests/bench/checkpoint FOLDER [ROWS] [RUNS]      FOLDER takes ROWS * 1536 bytes
 *
 * A folder on tmpfs shows what the processor does; on a disk its sync is most of all three.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"

enum { DIM = 64, BLOCK = 1 << 20 };

#define ROW_BYTES (2 * DIM * 4.0) /* parameters and one slot */

struct bench {
	struct embeng *e;
	char saved[512], tenth[512], copied[512];
	int64_t rows;
};

static void fatal(const char *what, const char *name)
{
	fprintf(stderr, "%s: %s: %s\n", name, what, strerror(errno));
	exit(1);
}

static struct embeng *open_table(int64_t rows)
{
	struct embeng_model *model = embeng_model_new();
	struct embeng *e;

	check(embeng_model_add_table(
		model,
		&(struct embeng_table_config){.size = sizeof(struct embeng_table_config),
					      .vocabulary_size = rows,
					      .dim = DIM,
					      .combiner = EMBENG_MEAN,
					      .optimizer = {.size = sizeof(struct embeng_optimizer),
							    .kind = EMBENG_ADAGRAD,
							    .learning_rate = 0.1f,
							    .initial_accumulator_value = 0.1f}}));
	check(embeng_model_add_feature(
		model,
		&(struct embeng_feature_config){.size = sizeof(struct embeng_feature_config)}));
	check(embeng_open("soft:cores=1", model, &e, NULL));
	embeng_model_free(model);
	return e;
}

static void copy_file(const char *from, const char *to)
{
	static char block[BLOCK];
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_EXCL, 0666);
	ssize_t n;

	if (in < 0 || out < 0)
		fatal("cannot be opened", in < 0 ? from : to);
	while ((n = read(in, block, sizeof(block))) > 0)
		if (write(out, block, (size_t)n) != n)
			fatal("cannot be written", to);
	if (n < 0 || fsync(out))
		fatal("cannot be copied", from);
	close(in);
	close(out);
}

/* Runs @fn for each file of @from with the path of a file of that name in @to. */
static void each_file(const char *from, const char *to, void (*fn)(const char *, const char *))
{
	DIR *dir = opendir(from);
	char a[1024], b[1024];
	struct dirent *entry;

	if (!dir)
		fatal("cannot be opened", from);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(a, sizeof(a), "%s/%s", from, entry->d_name);
		snprintf(b, sizeof(b), "%s/%s", to, entry->d_name);
		fn(a, b);
	}
	closedir(dir);
}

static void remove_copy(const char *from, const char *to)
{
	(void)from;
	if (unlink(to) && errno != ENOENT)
		fatal("cannot be removed", to);
}

/* Each begins without its files, as a save into a new folder and a copy do. */
static double by_copy(struct bench *b)
{
	double begin;

	each_file(b->saved, b->copied, remove_copy);
	begin = now_ms();
	each_file(b->saved, b->copied, copy_file);
	return now_ms() - begin;
}

static double by_save(struct bench *b)
{
	double begin;

	each_file(b->saved, b->saved, remove_copy);
	begin = now_ms();
	check(embeng_save(b->e, b->saved, NULL));
	return now_ms() - begin;
}

static double by_restore(struct bench *b)
{
	double begin = now_ms();

	check(embeng_restore(b->e, b->saved, NULL));
	return now_ms() - begin;
}

static double open_once(const char *folder)
{
	struct embeng_serving *serving;
	double begin = now_ms(), end;

	check(embeng_serving_open(folder, NULL, 0, &serving, NULL));
	end = now_ms();
	embeng_serving_close(serving);
	return end - begin;
}

/* The second time: what ran before leaves no cache as it was. */
static double by_opening(const char *folder)
{
	open_once(folder);
	return open_once(folder);
}

static struct spread print(const char *what, double *ms, int runs, double bytes)
{
	struct spread s = spread_of(ms, runs);

	printf("%-22s %9.3f / %9.3f / %9.3f ms (min/median/max)", what, s.min, s.median, s.max);
	if (bytes > 0)
		printf(", %5.2f GB/s", bytes / s.median / 1e6);
	putchar('\n');
	return s;
}

/* A copy's speed may be that of the pages that it is given: the fastest tells what it can be. */
static void print_share(struct spread copy, struct spread other)
{
	printf("%.0f %% of the copy's speed in the medians, %.0f %% of the fastest copy's\n",
	       100 * copy.median / other.median, 100 * copy.min / other.median);
}

static void measure(struct bench *b, int runs)
{
	double copy[RUNS_MOST], save[RUNS_MOST], restore[RUNS_MOST], large[RUNS_MOST],
		small[RUNS_MOST], bytes = (double)b->rows * ROW_BYTES, opened;
	struct spread copied;

	for (int r = -1; r < runs; r++) {
		int at = r < 0 ? 0 : r;

		save[at] = by_save(b);
		copy[at] = by_copy(b);
		restore[at] = by_restore(b);
		large[at] = by_opening(b->saved);
		small[at] = by_opening(b->tenth);
	}
	copied = print("copy", copy, runs, bytes);
	print_share(copied, print("save", save, runs, bytes));
	print_share(copied, print("restore", restore, runs, bytes));
	opened = print("open for serving", large, runs, 0).median;
	printf("%.2f times that\n",
	       opened / print("of a tenth of the rows", small, runs, 0).median);
}

static void make_folder(const char *path)
{
	if (mkdir(path, 0777) && errno != EEXIST)
		fatal("cannot be made", path);
}

static void make_below(char *path, size_t size, const char *folder, const char *name)
{
	snprintf(path, size, "%s/%s", folder, name);
	make_folder(path);
}

int main(int argc, char **argv)
{
	int runs = argc > 3 ? atoi(argv[3]) : 7;
	static struct bench b;
	struct embeng *tenth;

	b.rows = argc > 2 ? atoll(argv[2]) : 2000000;
	if (argc < 2 || runs < RUNS_LEAST || runs > RUNS_MOST || b.rows < 10) {
		fprintf(stderr, "usage: bench-checkpoint FOLDER [ROWS from 10] [RUNS %d-%d]\n",
			RUNS_LEAST, RUNS_MOST);
		return 2;
	}
	make_folder(argv[1]);
	make_below(b.saved, sizeof(b.saved), argv[1], "saved");
	make_below(b.tenth, sizeof(b.tenth), argv[1], "tenth");
	make_below(b.copied, sizeof(b.copied), argv[1], "copied");
	tenth = open_table(b.rows / 10);
	check(embeng_save(tenth, b.tenth, NULL));
	embeng_close(tenth);
	b.e = open_table(b.rows);
	measure(&b, runs);
	embeng_close(b.e);
	return 0;
}
