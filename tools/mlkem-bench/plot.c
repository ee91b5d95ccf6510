/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of an item against the batch size as SVG, without a library: a line for each
 * operation and backend, a dashed one for each operation's Keccak floor, peers as dots
 * at a batch of one. Both axes are logarithmic.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "bench.h"

#define WIDTH  960.0
#define HEIGHT 600.0
#define LEFT   70.0
#define RIGHT  300.0
#define TOP    40.0
#define BOTTOM 60.0

static const char *const colours[] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd",
    "#ff7f0e", "#17becf", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22"};
#define N_COLOURS (sizeof colours / sizeof colours[0])

struct plot {
	const struct bench *bench;
	FILE *out;
	double us_min, us_max, batch_max;
	unsigned n_series; /* drawn so far, for colours and the legend */
};

static double
plot_x(const struct plot *plot, double batch)
{
	double span = plot->batch_max > 1 ? log2(plot->batch_max) : 1;

	return LEFT + (WIDTH - LEFT - RIGHT) * log2(batch) / span;
}

static double
plot_y(const struct plot *plot, double us)
{
	double span = log10(plot->us_max / plot->us_min);

	return HEIGHT - BOTTOM -
	       (HEIGHT - TOP - BOTTOM) * log10(us / plot->us_min) /
		   (span > 0 ? span : 1);
}

static bool
is_drawn(const struct row *row)
{
	return !row->hidden && !row->failed;
}

static bool
same_series(const struct row *a, const struct row *b)
{
	return is_drawn(b) && !strcmp(a->op, b->op) && !strcmp(a->set, b->set) &&
	       !strcmp(a->backend, b->backend);
}

/* The range of both axes, to whole powers. */
static void
plot_range(struct plot *plot)
{
	double floor_us, lane_us = bench_lane_us(plot->bench);
	struct summary s;

	plot->us_min = INFINITY;
	plot->us_max = 0;
	plot->batch_max = 1;
	for (size_t i = 0; i < plot->bench->n_rows; i++) {
		const struct row *row = &plot->bench->rows[i];

		if (!is_drawn(row))
			continue;
		row_summary(row, plot->bench->options.repeats, &s);
		floor_us =
		    row->n_permutations > 0 ? row->n_permutations * lane_us : s.us;
		plot->us_min = fmin(plot->us_min, fmin(s.us, floor_us));
		plot->us_max = fmax(plot->us_max, s.us);
		plot->batch_max = fmax(plot->batch_max, row->batch);
	}
	plot->us_min = pow(10, floor(log10(plot->us_min)));
	plot->us_max = pow(10, ceil(log10(plot->us_max)));
}

static void
plot_axes(const struct plot *plot)
{
	FILE *out = plot->out;
	double right = WIDTH - RIGHT, bottom = HEIGHT - BOTTOM;
	static const unsigned steps[] = {1, 2, 5};
	int n_lines = 3 * (int)lround(log10(plot->us_max / plot->us_min)) + 1;

	fprintf(out,
	    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" "
	    "font-family=\"sans-serif\" font-size=\"12\">\n"
	    "<title>mlkem-bench: cost of an item by batch size</title>\n"
	    "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
	    WIDTH, HEIGHT);
	for (int i = 0; i < n_lines; i++) {
		double us =
		    plot->us_min * pow(10, (double)(i - i % 3) / 3) * steps[i % 3];
		double y = plot_y(plot, us);

		fprintf(out,
		    "<path d=\"M%g %.1fH%g\" stroke=\"#ddd\"/>"
		    "<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
		    LEFT, y, right, LEFT - 6, y + 4, us);
	}
	for (unsigned batch = 1; batch <= plot->batch_max; batch *= 2) {
		double x = plot_x(plot, batch);

		fprintf(out,
		    "<path d=\"M%.1f %gV%g\" stroke=\"#ddd\"/>"
		    "<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%u</text>\n",
		    x, TOP, bottom, x, bottom + 18, batch);
	}
	fprintf(out,
	    "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">items in a batch</text>\n"
	    "<text x=\"%g\" y=\"%g\">&#181;s an item</text>\n",
	    (LEFT + right) / 2, bottom + 40, LEFT - 50, TOP - 14);
}

static void
plot_legend(struct plot *plot, const struct row *row, const char *colour, bool is_floor)
{
	double y = TOP + 16.0 * plot->n_series;

	fprintf(plot->out,
	    "<path d=\"M%g %gh24\" stroke=\"%s\" stroke-width=\"2\"%s/>"
	    "<text x=\"%g\" y=\"%g\">%s/%s %s</text>\n",
	    WIDTH - RIGHT + 20, y, colour, is_floor ? " stroke-dasharray=\"6 4\"" : "",
	    WIDTH - RIGHT + 50, y + 4, row->op, row->set,
	    is_floor ? "Keccak floor" : row->backend);
	plot->n_series++;
}

/* All rows of the series that begins with rows[first], in the order of their batches. */
static void
plot_series(struct plot *plot, size_t first)
{
	const struct bench *bench = plot->bench;
	const char *colour = colours[plot->n_series % N_COLOURS];
	struct summary s;
	char move = 'M';

	fprintf(plot->out,
	    "<path class=\"series\" fill=\"none\" stroke=\"%s\" "
	    "stroke-width=\"2\" d=\"",
	    colour);
	for (size_t i = first; i < bench->n_rows; i++) {
		if (!same_series(&bench->rows[first], &bench->rows[i]))
			continue;
		row_summary(&bench->rows[i], bench->options.repeats, &s);
		fprintf(plot->out, "%c%.1f %.1f", move,
		    plot_x(plot, bench->rows[i].batch), plot_y(plot, s.us));
		move = 'L';
	}
	fputs("\"/>\n", plot->out);
	for (size_t i = first; i < bench->n_rows; i++) {
		if (!same_series(&bench->rows[first], &bench->rows[i]))
			continue;
		row_summary(&bench->rows[i], bench->options.repeats, &s);
		fprintf(plot->out,
		    "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\">"
		    "<title>%s/%s %s by %u: %.4g</title></circle>\n",
		    plot_x(plot, bench->rows[i].batch), plot_y(plot, s.us), colour,
		    bench->rows[i].op, bench->rows[i].set, bench->rows[i].backend,
		    bench->rows[i].batch, s.us);
	}
	plot_legend(plot, &bench->rows[first], colour, false);
}

static void
plot_floor(struct plot *plot, const struct row *row, double lane_us)
{
	double y = plot_y(plot, row->n_permutations * lane_us);

	fprintf(plot->out,
	    "<path class=\"floor\" d=\"M%g %.1fH%g\" stroke=\"#333\" "
	    "stroke-dasharray=\"6 4\"/>\n",
	    LEFT, y, WIDTH - RIGHT);
	plot_legend(plot, row, "#333", true);
}

/* Is rows[i] the first of its series, or the first of its operation and set? */
static bool
is_first(const struct bench *bench, size_t i, bool of_operation)
{
	const struct row *row = &bench->rows[i];

	for (size_t j = 0; j < i; j++) {
		const struct row *other = &bench->rows[j];

		if (same_series(row, other))
			return false;
		if (of_operation && is_drawn(other) && !strcmp(row->op, other->op) &&
		    !strcmp(row->set, other->set))
			return false;
	}
	return true;
}

int
bench_plot(const struct bench *bench, const char *path)
{
	struct plot plot = {.bench = bench, .out = fopen(path, "w")};
	double lane_us = bench_lane_us(bench);
	int r = 0;

	if (!plot.out)
		return tool_fail("%s: %s", path, strerror(errno));
	plot_range(&plot);
	plot_axes(&plot);
	for (size_t i = 0; i < bench->n_rows; i++) {
		if (is_drawn(&bench->rows[i]) && is_first(bench, i, false))
			plot_series(&plot, i);
	}
	for (size_t i = 0; i < bench->n_rows; i++) {
		if (is_drawn(&bench->rows[i]) && bench->rows[i].n_permutations > 0 &&
		    is_first(bench, i, true))
			plot_floor(&plot, &bench->rows[i], lane_us);
	}
	fputs("</svg>\n", plot.out);
	if (ferror(plot.out))
		r = -1;
	if (fclose(plot.out) != 0)
		r = -1;
	return r ? tool_fail("%s: %s", path, strerror(errno)) : 0;
}
