// SPDX-License-Identifier: MIT
/*
 * Changes JSON as JSON: a value is replaced, taken away, or put where another one stands. One
 * change in four is to the bytes, so that texts which are no JSON come up, too.
 */
#include <json-c/json.h>

#include "fuzz.h"
#include "json_words.h"

#define PLACES 512u

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed);

struct place {
	struct json_object *above;
	const char *key; /* NULL: an element */
	size_t index;
	struct json_object *value;
};

struct tree {
	struct place places[PLACES];
	uint32_t count;
	uint64_t random;
};

static uint32_t pick(struct tree *t, uint32_t limit)
{
	t->random = t->random * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(t->random >> 33) % limit;
}

static void walk(struct tree *t, struct json_object *value)
{
	if (json_object_is_type(value, json_type_object)) {
		json_object_object_foreach(value, key, member)
		{
			if (t->count == PLACES)
				return;
			t->places[t->count++] = (struct place){value, key, 0, member};
			walk(t, member);
		}
	} else if (json_object_is_type(value, json_type_array)) {
		for (size_t i = 0; i < json_object_array_length(value) && t->count < PLACES; i++) {
			struct json_object *element = json_object_array_get_idx(value, i);

			t->places[t->count++] = (struct place){value, NULL, i, element};
			walk(t, element);
		}
	}
}

/* A value made up, or one that stands somewhere else. */
static struct json_object *new_value(struct tree *t)
{
	static const char *const made_up[] = {"null",
					      "true",
					      "false",
					      "0",
					      "1",
					      "2",
					      "-1",
					      "1.5",
					      "1e30",
					      "4294967296",
					      "9223372036854775807",
					      "\"nan\"",
					      "\"-inf\"",
					      "\"\"",
					      "{}",
					      "[]",
					      "[[]]",
					      "[1]",
					      "[[1, 2], [3]]",
					      "[[[1]]]",
					      "{\"fill\": 1}",
					      "{\"dynamic\": \"r\"}"};
	const uint32_t count = sizeof(made_up) / sizeof(made_up[0]);
	struct json_object *copy = NULL;

	if (pick(t, 3) == 0)
		return json_tokener_parse(made_up[pick(t, count)]);
	if (pick(t, 2))
		return json_object_new_string(json_words[pick(t, JSON_WORDS)]);
	json_object_deep_copy(t->places[pick(t, t->count)].value, &copy, NULL);
	return copy;
}

static void replace(const struct place *p, struct json_object *value)
{
	if (p->key)
		json_object_object_add(p->above, p->key, value);
	else
		json_object_array_put_idx(p->above, p->index, value);
}

static void take_away(const struct place *p)
{
	if (p->key)
		json_object_object_del(p->above, p->key);
	else
		json_object_array_del_idx(p->above, p->index, 1);
}

static void change(struct tree *t)
{
	const struct place *p = &t->places[pick(t, t->count)];
	struct json_object *value;

	switch (pick(t, 4)) {
	case 0:
		take_away(p);
		return;
	case 1:
		value = new_value(t);
		if (p->key)
			json_object_object_add(p->above, json_words[pick(t, JSON_WORDS)], value);
		else
			json_object_array_add(p->above, value);
		return;
	default:
		replace(p, new_value(t));
	}
}

static size_t write_out(struct json_object *root, uint8_t *data, size_t most)
{
	size_t length;
	const char *text = json_object_to_json_string_length(root, JSON_C_TO_STRING_PLAIN, &length);

	if (!text || length > most)
		return 0;
	memcpy(data, text, length);
	return length;
}

/* Return: 0 when the text is no tree to change, or became too long. */
static size_t change_tree(uint8_t *data, size_t size, size_t most, unsigned int seed)
{
	struct json_tokener *tokener = json_tokener_new_ex(32);
	static struct tree t;
	struct json_object *root = json_tokener_parse_ex(tokener, (const char *)data, (int)size);

	json_tokener_free(tokener);
	t.count = 0;
	t.random = seed;
	walk(&t, root);
	if (t.count)
		change(&t);
	size = t.count ? write_out(root, data, most) : 0;
	json_object_put(root);
	return size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed)
{
	size_t length = seed % 4 ? change_tree(data, size, most, seed) : 0;

	return length ? length : LLVMFuzzerMutate(data, size, most);
}
