/* os.h: the table of OS calls (os.def). A context holds one; the parts of the library take it as `const
 * TgOs *os`. A failed call sets errno. */
#ifndef TG_OS_H
#define TG_OS_H
#ifndef _GNU_SOURCE
#error "define _GNU_SOURCE before the first #include"
#endif
#include "base/base.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>

struct TgOs {
#define OS(result, name, params, args, failed, err) result(*name) params;
#include "base/os.def"
#undef OS
};

/* continues after an interruption or a short write */
bool os_write_all(const TgOs *os, int fd, const void *p, size_t n);
bool os_read_all(const TgOs *os, int fd, void *p, size_t n); /* false: an error, or the file is too short */

/* the path by which a process writes to its own standard output */
extern const char os_own_output[];
int64_t os_modified_ns(const struct stat *s);      /* time of a file's last change */
void os_memory(uint64_t *unused, uint64_t *total); /* bytes of memory of this machine; 0: not known */
#endif
