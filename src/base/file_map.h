/* file_map.h: files as memory. */
#ifndef TG_FILE_MAP_H
#define TG_FILE_MAP_H
#include "base/base.h"

/* the mapping begins `lead` bytes before the requested offset */
typedef struct FileMap {
  void *at;
  size_t nbytes, lead;
} FileMap;

/* Maps nbytes of a regular file from `offset` on. The mapping is shared: what is written to it is written
 * to the file. create: a file that does not exist is made, and one that is too short is extended with
 * zeros. If nbytes is 0, nothing is mapped, but the file is still checked. */
TgStatus file_map(const TgOs *os, TgError *err, const char *path, int64_t offset, size_t nbytes,
                  bool writable, bool create, FileMap *out);

static inline void *file_data(const FileMap *m) { return m->at ? (char *)m->at + m->lead : NULL; }

TgStatus file_size(const TgOs *os, TgError *err, const char *path, int64_t *nbytes); /* of a regular file */
void file_unmap(const TgOs *os, FileMap *m);
#endif
