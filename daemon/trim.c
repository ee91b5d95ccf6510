/* SPDX-License-Identifier: Apache-2.0 */
#include "trim.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kem/fault.h"

/*
 * The loader wrote into no segment without PF_W (DF_TEXTREL aside, which no library of
 * a distribution has), so that its pages are those of the file and can be read again.
 * A segment whose memory is longer than its file would not be: it is left alone.
 */
static int
trim_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	(void)size;
	(void)arg;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t start, end;

		if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W) ||
		    segment->p_memsz != segment->p_filesz)
			continue;
		start = (info->dlpi_addr + segment->p_vaddr) & ~(page - 1);
		end = info->dlpi_addr + segment->p_vaddr + segment->p_memsz;
		/* Locked pages (mlockall) refuse: then they were meant to stay. */
		madvise((void *)start, end - start, MADV_DONTNEED);
	}
	return 0;
}

void
trim_after_start(void)
{
	malloc_trim(0);
	if (!fault("trim-nothing"))
		dl_iterate_phdr(trim_object, NULL);
}
