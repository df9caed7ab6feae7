// SPDX-License-Identifier: MIT
/*
 * Draws the pages of `embeng top` on a terminal, by ncurses, and acts on keys.
 *
 * Between two samples the process sleeps until a key, a change of the terminal's size or the next
 * sample. The selected context is remembered by its file's number, so that it stays selected when
 * the order changes. The terminal is given back in its former state also after SIGINT and SIGTERM.
 */
#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../frame/interrupt.h"
#include "../frame/progress.h"
#include "page.h"
#include "top.h"

enum view { VIEW_ALL, VIEW_CONTEXT, VIEW_HELP };

#define COLOR_ALARM 1
#define KEY_ESCAPE 27

/**
 * struct screen - the choices of the user
 * @device: address of the one device to show, or ""
 * @selected, @address: client number and device of the selected context, if @has_selected
 * @top: first line of the page that is drawn
 * @paused: no more samples are taken
 * @error: negative errno of a sample that could not be taken
 */
struct screen {
	struct sampler *sampler;
	enum view view;
	enum order order;
	char device[24];
	bool has_selected;
	uint64_t selected;
	char address[24];
	size_t top;
	bool paused;
	bool done;
	int error;
};

static const char *const help[] = {
	"q        quit; in another view: go back",
	"h, ?     this help",
	"up, down choose a context (or k, j)",
	"Enter    look into the chosen context, with its hottest tables and rows",
	"s        sort contexts by the next key: busy, commands, ids, rows, memory, stalls, pid",
	"d        show the next device alone; after the last, all",
	"+, -     take samples less or more often",
	"space    pause, and go on",
	"",
	"Rates are differences of counts over the time between two samples; - is not known.",
	"STALLS/S: how often in a second a queue began to wait: for a LOOKUP or an UPDATE of",
	"another replica or queue, for a queue that a FENCE names, or for space in its",
	"completion ring.",
};

static bool is_selected(const struct screen *s, const struct rated_context *context)
{
	return s->has_selected && context->now->info.client == s->selected &&
	       !strcmp(context->now->info.address, s->address);
}

static bool is_row_shown(const struct screen *s, const struct rated_context *context)
{
	return !*s->device || !strcmp(context->now->info.address, s->device);
}

/* Return: the index of the selected context, or NO_ROW if it has gone. */
static size_t find_selected(const struct screen *s)
{
	const struct rates *rates = &s->sampler->rates;

	for (size_t i = 0; i < rates->sample->context_count; i++) {
		if (is_selected(s, &rates->contexts[i]))
			return i;
	}
	return NO_ROW;
}

static void select_context(struct screen *s, size_t index)
{
	const struct fdinfo *info = &s->sampler->rates.contexts[index].now->info;

	s->has_selected = true;
	s->selected = info->client;
	strcpy(s->address, info->address);
}

/* Selects the next or the previous context that is shown; the first when none is selected. */
static void move_selection(struct screen *s, int step)
{
	const struct rates *rates = &s->sampler->rates;
	size_t count = rates->sample->context_count, at = find_selected(s);

	for (size_t i = 0; i < count; i++) {
		if (at == NO_ROW)
			at = 0;
		else if ((step < 0 && !at) || (step > 0 && at + 1 == count))
			return;
		else
			at = step < 0 ? at - 1 : at + 1;
		if (is_row_shown(s, &rates->contexts[at])) {
			select_context(s, at);
			return;
		}
	}
}

static void choose_next_device(struct screen *s)
{
	const struct sample *sample = s->sampler->rates.sample;
	size_t next = 0;

	for (size_t i = 0; *s->device && i < sample->device_count; i++) {
		if (!strcmp(sample->devices[i].address, s->device))
			next = i + 1;
	}
	if (next < sample->device_count)
		strcpy(s->device, sample->devices[next].address);
	else
		*s->device = '\0';
}

static void change_interval(struct screen *s, double factor)
{
	double interval = s->sampler->interval * factor;

	if (interval >= 0.1 && interval <= 3600)
		s->sampler->interval = interval;
}

static void go_back(struct screen *s)
{
	if (s->view == VIEW_ALL)
		s->done = true;
	s->view = VIEW_ALL;
	s->top = 0;
}

static void act_on_key(struct screen *s, int key)
{
	switch (key) {
	case 'q':
	case KEY_ESCAPE:
		go_back(s);
		return;
	case 'h':
	case '?':
		s->view = VIEW_HELP;
		s->top = 0;
		return;
	case 's':
		s->order = (s->order + 1) % ORDERS;
		order_contexts(&s->sampler->rates, s->order);
		return;
	case 'd':
		choose_next_device(s);
		return;
	case '+':
	case '-':
		change_interval(s, key == '+' ? 2 : 0.5);
		return;
	case ' ':
		s->paused = !s->paused;
		return;
	case '\n':
	case '\r':
	case KEY_ENTER:
		if (find_selected(s) == NO_ROW)
			move_selection(s, 1);
		if (find_selected(s) != NO_ROW)
			s->view = VIEW_CONTEXT;
		return;
	case KEY_UP:
	case 'k':
		move_selection(s, -1);
		return;
	case KEY_DOWN:
	case 'j':
		move_selection(s, 1);
		return;
	}
}

static void make_lines(const struct screen *s, struct lines *lines)
{
	struct page page = {
		.width = COLS, .order = s->order, .device = *s->device ? s->device : NULL};
	size_t selected = find_selected(s);

	if (s->view == VIEW_HELP) {
		lines_add(lines, LINE_TITLE, NO_ROW, "keys of embeng top");
		for (size_t i = 0; i < sizeof(help) / sizeof(help[0]); i++)
			lines_add(lines, LINE_TEXT, NO_ROW, "%s", help[i]);
	} else if (s->view == VIEW_CONTEXT && selected != NO_ROW) {
		page_context(&page, &s->sampler->rates, selected, lines);
	} else if (s->view == VIEW_CONTEXT) {
		lines_add(lines, LINE_ALARM, NO_ROW, "the context has ended; q goes back");
	} else {
		page_overview(&page, &s->sampler->rates, lines);
	}
}

static attr_t find_attributes(const struct screen *s, const struct line *line)
{
	if (s->view == VIEW_ALL && line->row != NO_ROW &&
	    is_selected(s, &s->sampler->rates.contexts[line->row]))
		return A_REVERSE;
	switch (line->kind) {
	case LINE_TITLE:
		return A_BOLD;
	case LINE_HEADER:
		return A_UNDERLINE;
	case LINE_ALARM:
		return has_colors() ? A_BOLD | (attr_t)COLOR_PAIR(COLOR_ALARM) : A_BOLD;
	default:
		return A_NORMAL;
	}
}

/* Chooses the first line so that the selected one is on the screen, and no more than needed. */
static void scroll_to_selected(struct screen *s, const struct lines *lines, size_t rows)
{
	if (s->view != VIEW_ALL || s->top + rows > lines->count)
		s->top = 0;
	for (size_t i = 0; s->view == VIEW_ALL && i < lines->count; i++) {
		if (find_attributes(s, &lines->list[i]) != A_REVERSE)
			continue;
		if (i < s->top)
			s->top = i;
		if (i >= s->top + rows)
			s->top = i + 1 - rows;
	}
}

static void draw_status(const struct screen *s)
{
	char text[128];

	if (s->error)
		snprintf(text, sizeof(text), "the devices cannot be read: %s", strerror(-s->error));
	else
		snprintf(text, sizeof(text),
			 "%s %.3g s  q quit  h help  s sort: %s  d device: %s  "
			 "Enter look into",
			 s->paused ? "paused," : "every", s->sampler->interval,
			 order_word(s->order), *s->device ? s->device : "all");
	attrset(A_REVERSE);
	mvaddnstr(LINES - 1, 0, text, COLS);
	attrset(A_NORMAL);
}

static void draw_screen(struct screen *s)
{
	struct lines lines = {0};
	size_t rows = LINES > 1 ? (size_t)LINES - 1 : 0;

	make_lines(s, &lines);
	scroll_to_selected(s, &lines, rows);
	erase();
	for (size_t y = 0; y < rows && s->top + y < lines.count; y++) {
		const struct line *line = &lines.list[s->top + y];

		attrset(find_attributes(s, line));
		mvaddnstr((int)y, 0, line->text, COLS);
	}
	attrset(A_NORMAL);
	draw_status(s);
	refresh();
	lines_free(&lines);
}

static int64_t read_time_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void take_sample_if_due(struct screen *s, int64_t *due)
{
	int64_t now = read_time_ms();

	if (now < *due)
		return;
	*due = now + (int64_t)(s->sampler->interval * 1000);
	if (s->paused || !sampler_goes_on(s->sampler))
		return;
	s->error = sampler_take(s->sampler);
	order_contexts(&s->sampler->rates, s->order);
}

/* Once for each sample; nobody is asked for what is not on the screen. */
static void look_into_selected(struct screen *s)
{
	size_t selected = s->view == VIEW_CONTEXT ? find_selected(s) : NO_ROW;
	int err;

	if (selected == NO_ROW)
		return;
	err = sampler_look(s->sampler, &s->sampler->rates.contexts[selected]);
	s->error = s->error ? s->error : err;
}

/* An interrupted sleep, as by a signal that ends the program, gives no key. */
static void run_screen(struct screen *s)
{
	int64_t due = read_time_ms() + 500, left;
	int key;

	while (!s->done && !interrupted()) {
		look_into_selected(s);
		draw_screen(s);
		left = due - read_time_ms();
		timeout(left > 0 ? (int)left : 0);
		key = getch();
		if (key != ERR)
			act_on_key(s, key);
		take_sample_if_due(s, &due);
	}
}

static void prepare_terminal(FILE *out)
{
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	set_escdelay(25);
	curs_set(0);
	if (terminal_colors(out) && has_colors()) {
		start_color();
		use_default_colors();
		init_pair(COLOR_ALARM, COLOR_RED, -1);
	}
}

static int run_terminal(struct screen *s, FILE *out)
{
	SCREEN *terminal = newterm(NULL, out, stdin);

	if (!terminal)
		return -ENOTTY;
	prepare_terminal(out);
	interrupt_catch();
	order_contexts(&s->sampler->rates, s->order);
	run_screen(s);
	endwin();
	delscreen(terminal);
	interrupt_release();
	return 0;
}

/* ncurses writes to a descriptor, which the command's own stdout does not have. */
int screen_run(struct sampler *sampler, enum order order)
{
	struct screen s = {.sampler = sampler, .order = order};
	int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0), err;
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");

	if (!out) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	err = run_terminal(&s, out);
	fclose(out);
	return err;
}
