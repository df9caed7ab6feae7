// SPDX-License-Identifier: MIT
/*
 * Draws the results of a benchmark as SVG: a bar for each result with its stages, and a mark where
 * the limit of memory is.
 */
#include <errno.h>
#include <stdio.h>

#include "../frame/outfile.h"
#include "report.h"

enum { LABELS = 360, BAR = 560, NUMBERS = 200, ROW = 30, HEAD = 70, FOOT = 20 };

/* Told apart without colour vision, too: Okabe and Ito 2008. */
static const char *const colours[BENCH_STAGES] = {
	[STAGE_CHECK] = "#e69f00",  [STAGE_LOOKUP] = "#0072b2", [STAGE_PARTITION] = "#009e73",
	[STAGE_UPDATE] = "#d55e00", [STAGE_RING] = "#cc79a7",	[STAGE_COPY] = "#f0e442",
	[STAGE_OTHER] = "#999999",
};

static double sum_stages(const struct bench_result *r)
{
	double sum = 0;

	for (int s = 0; s < BENCH_STAGES; s++)
		sum += r->stage_ms[s];
	return sum;
}

static void draw_legend(FILE *f)
{
	for (int s = 0; s < BENCH_STAGES; s++)
		fprintf(f,
			"<rect x=\"%d\" y=\"36\" width=\"12\" height=\"12\" fill=\"%s\"/>"
			"<text x=\"%d\" y=\"47\">%s</text>\n",
			LABELS + s * 80, colours[s], LABELS + s * 80 + 16, bench_stage_names[s]);
}

static void draw_label(FILE *f, const struct bench_result *r, int y)
{
	fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s %s", LABELS - 8, y + 15,
		r->workload.name, bench_ops[r->op]);
	if (r->optimizer)
		fprintf(f, " %s", r->optimizer);
	if (*r->detail)
		fprintf(f, ": %s", r->detail);
	if (bench_op_is_small(r->op))
		fprintf(f, " x %d, %s", r->commands, r->waiting ? "waiting" : "polled");
	fprintf(f, ", %d thread%s</text>\n", r->threads, r->threads == 1 ? "" : "s");
}

/* Bars are shares of their own step: steps of different lengths stand below one another. */
static void draw_bar(FILE *f, const struct bench_result *r, int y)
{
	double x = LABELS, all = sum_stages(r);

	for (int s = 0; s < BENCH_STAGES; s++) {
		double width = r->stage_ms[s] / all * BAR;

		fprintf(f,
			"<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"20\" fill=\"%s\">"
			"<title>%s %.4f ms</title></rect>\n",
			x, y, width, colours[s], bench_stage_names[s], r->stage_ms[s]);
		x += width;
	}
	fprintf(f, "<text x=\"%d\" y=\"%d\">%.4g ms", LABELS + BAR + 8, y + 15, r->step_ms.median);
	if (r->limit_ms > 0)
		fprintf(f, ", %.0f %% of the limit", r->limit_ms / r->step_ms.median * 100);
	fprintf(f, "</text>\n");
}

static void draw_limit(FILE *f, const struct bench_result *r, int y)
{
	double share = r->limit_ms / r->step_ms.median;

	if (r->limit_ms <= 0 || share > 1)
		return;
	fprintf(f,
		"<line x1=\"%.2f\" x2=\"%.2f\" y1=\"%d\" y2=\"%d\" stroke=\"black\" "
		"stroke-width=\"2\"><title>limit %.4f ms</title></line>\n",
		LABELS + share * BAR, LABELS + share * BAR, y - 3, y + 23, r->limit_ms);
}

static void draw_chart(FILE *f, const struct bench_results *results)
{
	int height = HEAD + (int)results->count * ROW + FOOT;

	fprintf(f,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"font-family=\"sans-serif\" font-size=\"12\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
		"<text x=\"%d\" y=\"20\" font-size=\"14\">Time of a step by stage; the line is "
		"the memory's limit</text>\n",
		LABELS + BAR + NUMBERS, height, LABELS);
	draw_legend(f);
	for (size_t k = 0; k < results->count; k++) {
		int y = HEAD + (int)k * ROW;

		draw_label(f, &results->items[k], y);
		draw_bar(f, &results->items[k], y);
		draw_limit(f, &results->items[k], y);
	}
	fprintf(f, "</svg>\n");
}

int bench_draw_svg(const char *path, const struct bench_results *results)
{
	struct outfile f;
	int err = outfile_open(&f, path);

	if (err)
		return err;
	draw_chart(f.stream, results);
	return outfile_commit(&f);
}
