/* file_map.h: files as memory. */
#ifndef TG_FILE_MAP_H
#define TG_FILE_MAP_H
#include "base/base.h"

/* the mapping begins `lead` bytes before what was asked for */
typedef struct FileMap {
  void *at;
  size_t nbytes, lead;
} FileMap;

/* Maps nbytes of a regular file from offset on, shared: what is written to the mapping is written to the
 * file. `create`: the file is made, or lengthened with zeros, where it is not there or too short. Without
 * bytes there is no mapping, but the file is checked all the same. */
TgStatus file_map(const TgOs *os, TgError *err, const char *path, int64_t offset, size_t nbytes,
                  bool writable, bool create, FileMap *out);

static inline void *file_data(const FileMap *m) { return m->at ? (char *)m->at + m->lead : NULL; }

TgStatus file_size(const TgOs *os, TgError *err, const char *path, int64_t *nbytes); /* of a regular file */
void file_unmap(const TgOs *os, FileMap *m);
#endif
