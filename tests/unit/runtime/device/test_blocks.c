// SPDX-License-Identifier: MIT
/*
 * Memory at hand for old rows: as many blocks as were asked for, of zeros, each taken once, and none for
 * what is no block.
 */
#include <string.h>
#include <sys/mman.h>

#include "runtime/src/host/blocks.h"
#include "runtime/src/host/port.h"
#include "suite.h"

#define PAGE 4096u

static void expect_zeros(const char *block, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i++)
		ck_assert_int_eq(block[i], 0);
}

/* True if all @bytes are mapped and in memory. */
static bool is_there(const char *from, uint64_t bytes)
{
	static unsigned char pages[HOST_BLOCK / PAGE];

	if (mincore((void *)(uintptr_t)from, bytes, pages))
		return false;
	for (uint64_t i = 0; i < bytes / PAGE; i++) {
		if (!(pages[i] & 1))
			return false;
	}
	return true;
}

START_TEST(blocks_are_taken_once)
{
	char *blocks[4];

	host_blocks_prepare(4 * HOST_BLOCK);
	for (size_t i = 0; i < 4; i++) {
		blocks[i] = host_block_take(HOST_BLOCK);
		ck_assert_ptr_nonnull(blocks[i]);
		ck_assert(is_there(blocks[i], HOST_BLOCK));
		expect_zeros(blocks[i], HOST_BLOCK);
		for (size_t k = 0; k < i; k++)
			ck_assert_ptr_ne(blocks[i], blocks[k]);
		memset(blocks[i], 1, HOST_BLOCK);
	}
	ck_assert_ptr_null(host_block_take(HOST_BLOCK));
	for (size_t i = 0; i < 4; i++)
		ck_assert_int_eq(munmap(blocks[i], HOST_BLOCK), 0);
}
END_TEST

/* Half a block and less is made by itself, and what is larger, too; the rest of a block goes back. */
START_TEST(only_blocks_are_given)
{
	const uint64_t some = HOST_BLOCK / 2 + 1, pages = HOST_BLOCK / 2 + PAGE;
	char *block;

	host_blocks_prepare(HOST_BLOCK + HOST_BLOCK / 2);
	ck_assert_ptr_null(host_block_take(0));
	ck_assert_ptr_null(host_block_take(HOST_BLOCK / 2));
	ck_assert_ptr_null(host_block_take(HOST_BLOCK + 1));
	block = port_alloc_table(some, NULL);
	ck_assert_ptr_nonnull(block);
	ck_assert(is_there(block, pages));
	ck_assert(!is_there(block + pages, PAGE));
	ck_assert_ptr_null(host_block_take(HOST_BLOCK));
	port_free_table(block, some);
	ck_assert(!is_there(block, PAGE));
}
END_TEST

START_TEST(what_nobody_took_goes_back)
{
	host_blocks_prepare(3 * HOST_BLOCK);
	host_blocks_prepare(0);
	host_blocks_drop();
	ck_assert_ptr_null(host_block_take(HOST_BLOCK));
	host_blocks_drop();
}
END_TEST

/* No more than the limit, whatever is asked for. */
START_TEST(there_is_a_limit)
{
	uint64_t count = 0;
	char *block;

	host_blocks_prepare(HOST_BLOCKS_MOST + HOST_BLOCK);
	for (; (block = host_block_take(HOST_BLOCK)); count++)
		ck_assert_int_eq(munmap(block, HOST_BLOCK), 0);
	ck_assert_uint_eq(count, HOST_BLOCKS_MOST / HOST_BLOCK);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, blocks_are_taken_once);
	tcase_add_test(tcase, only_blocks_are_given);
	tcase_add_test(tcase, what_nobody_took_goes_back);
	tcase_add_test(tcase, there_is_a_limit);
}

int main(void)
{
	return suite_main("blocks", add);
}
