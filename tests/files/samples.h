/* samples.h: small files of each format, written by hand: what the tests of files load, cut and spoil. */
#ifndef TG_SAMPLES_H
#define TG_SAMPLES_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct Bytes {
  unsigned char at[16384];
  size_t n;
} Bytes;

static inline void add(Bytes *b, const void *p, size_t n) { memcpy(b->at + b->n, p, n), b->n += n; }

static inline void add_le(Bytes *b, uint64_t v, int n) {
  for (int i = 0; i < n; i++)
    b->at[b->n++] = i < 8 ? (unsigned char)(v >> 8 * i) : 0;
}

typedef struct ZipFile {
  const char *name, *data;
  size_t n, size;
  int method;
  uint32_t crc;
} ZipFile;

/* wide: sizes and the end in the fields of zip64 */
static inline void zip_write(Bytes *b, const ZipFile *f, int n, bool wide) {
  Bytes head = {.n = 0};
  for (int i = 0; i < n; i++) {
    uint32_t at = (uint32_t)b->n, len = (uint32_t)strlen(f[i].name);
    add(b, "PK\3\4", 4), add_le(b, 20, 2), add_le(b, 0x800, 2), add_le(b, (uint64_t)f[i].method, 2),
        add_le(b, 0, 4), add_le(b, f[i].crc, 4);
    add_le(b, f[i].n, 4), add_le(b, f[i].size, 4), add_le(b, len, 2), add_le(b, 5, 2), add(b, f[i].name, len),
        add(b, "FB\1\0Z", 5), add(b, f[i].data, f[i].n);
    add(&head, "PK\1\2", 4), add_le(&head, 20, 2), add_le(&head, 20, 2), add_le(&head, 0x800, 2),
        add_le(&head, (uint64_t)f[i].method, 2), add_le(&head, 0, 4);
    add_le(&head, f[i].crc, 4), add_le(&head, wide ? 0xffffffff : f[i].n, 4),
        add_le(&head, wide ? 0xffffffff : f[i].size, 4), add_le(&head, len, 2),
        add_le(&head, wide ? 32 : 0, 2);
    add_le(&head, 0, 10), add_le(&head, wide ? 0xffffffff : at, 4), add(&head, f[i].name, len);
    if (wide)
      add(&head, "\x99\x99\0\0", 4), add_le(&head, 1, 2), add_le(&head, 24, 2), add_le(&head, f[i].size, 8),
          add_le(&head, f[i].n, 8), add_le(&head, at, 8);
  }
  size_t at = b->n;
  add(b, head.at, head.n);
  if (wide) {
    size_t end = b->n;
    add(b, "PK\6\6", 4), add_le(b, 44, 8), add_le(b, 0, 12), add_le(b, (uint64_t)n, 8),
        add_le(b, (uint64_t)n, 8), add_le(b, head.n, 8), add_le(b, at, 8);
    add(b, "PK\6\7", 4), add_le(b, 0, 4), add_le(b, end, 8), add_le(b, 1, 4);
  }
  add(b, "PK\5\6", 4), add_le(b, 0, 4), add_le(b, wide ? 0xffff : (uint64_t)n, 2),
      add_le(b, wide ? 0xffff : (uint64_t)n, 2), add_le(b, wide ? 0xffffffff : head.n, 4);
  add_le(b, wide ? 0xffffffff : at, 4), add_le(b, 2, 2), add(b, "hi", 2);
}

/* "hello hello hello hello\n", deflated by another program (24 bytes, crc 0x0b598800), and its gzip. */
static const unsigned char deflated[] = {203, 72, 205, 201, 201, 87, 200, 64, 39, 185, 0};
static const unsigned char gzipped[] = {31, 139, 8,  0,  0,   0, 0, 0,   2,  3,  203, 72, 205, 201, 201,
                                        87, 200, 64, 39, 185, 0, 0, 136, 89, 11, 24,  0,  0,   0};
static const char hello[] = "hello hello hello hello\n";

enum { HELLO_CRC = (int)0x0b598800 };

static const ZipFile zip_files[] = {
    {"a/", "", 0, 0, 0, 0},
    {"a/one", "first", 5, 5, 0, 0},
    {"two", (const char *)deflated, sizeof deflated, 24, 8, (uint32_t)HELLO_CRC},
    {"none", "", 0, 0, 0, 0}};

static inline void tar_add(Bytes *b, const char *name, char type, const void *data, size_t n,
                           const char *prefix) {
  unsigned char h[512] = {0};
  unsigned sum = 8 * ' ';
  memcpy(h, name, strnlen(name, 100));
  snprintf((char *)h + 100, 8, "%07o", 0644), snprintf((char *)h + 124, 12, "%011o", (unsigned)n),
      h[156] = (unsigned char)type;
  memcpy(h + 257, "ustar\00000", 8);
  if (prefix) strcpy((char *)h + 345, prefix);
  for (int i = 0; i < 512; i++)
    sum += i >= 148 && i < 156 ? 0 : h[i];
  snprintf((char *)h + 148, 8, "%06o", sum);
  add(b, h, 512), add(b, data, n);
  while (b->n % 512)
    b->at[b->n++] = 0;
}

#define STORAGE                                                                                              \
  "((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"                                                        \
  "0X\3\0\0\0cpuK\x10tQ"
#define REBUILD "ctorch._utils\n_rebuild_tensor_v2\n" STORAGE
/* A permuted tensor, a view with an offset, one of size 0, a parameter; None, numbers, values that are
 * shared. */
static const char good_pickle[] =
    "\x80\2}q\0(X\1\0\0\0a" REBUILD "K\2K\3K\4\x86K\1K\3\x86\x89"
    "ccollections\nOrderedDict\n)RtRq\1X\1\0\0\0b" REBUILD "K\4K\2K\1K\3\x87K\3K\x63K\1\x87\x89NtR"
    "X\1\0\0\0c" REBUILD "K\x63K\0K\3\x86K\3K\1\x86\x89NtRX\1\0\0\0dctorch._utils\n_rebuild_parameter\n("
    "h\1\x88NtRX\1\0\0\0e]q\2(G\x3f\xf8\0\0\0\0\0\0\x8a\1\xfeh\1Ne"
    "X\1\0\0\0fh\2X\1\0\0\0e\x88X\1\0\0\0gh\2K\x7f"
    "ctorch\nSize\n(K\1K\2\x86tRu.";

/* A pickle in the zip of a checkpoint, with a storage "0" of 16 floats 0 .. 15. */
static inline void checkpoint_write(Bytes *b, const void *pickle, size_t n) {
  float f[16];
  for (int i = 0; i < 16; i++)
    f[i] = (float)i;
  ZipFile z[2] = {{"m/data.pkl", pickle, n, n, 0, 0},
                  {"m/data/0", (const char *)f, sizeof f, sizeof f, 0, 0}};
  zip_write(b, z, 2, false);
}

static inline void add_text(Bytes *b, const char *s) { add_le(b, strlen(s), 8), add(b, s, strlen(s)); }

typedef struct Gguf {
  Bytes b;
  size_t tensors, kvs, key, type, array_type, array_count, text, align, name, rank, dim, ttype, offset, flag,
      second;
} Gguf;

static inline void gguf_write(Gguf *g) { /* all kinds of entries; where the fields are, for spoiling them */
  Bytes *b = &g->b;
  memset(g, 0, sizeof *g);
  add(b, "GGUF", 4), add_le(b, 3, 4), g->tensors = b->n, add_le(b, 2, 8), g->kvs = b->n, add_le(b, 6, 8);
  g->key = b->n, add_text(b, "a.text"), g->type = b->n, add_le(b, 8, 4), g->text = b->n, add_text(b, "value");
  add_text(b, "b.list"), add_le(b, 9, 4), g->array_type = b->n, add_le(b, 8, 4), g->array_count = b->n,
                                          add_le(b, 2, 8), add_text(b, "x"), add_text(b, "");
  g->second = b->n, add_text(b, "c.nums"), add_le(b, 9, 4), add_le(b, 5, 4), add_le(b, 3, 8), add_le(b, 7, 4),
  add_le(b, 0xffffffff, 4), add_le(b, 9, 4);
  add_text(b, "d.flag"), add_le(b, 7, 4), g->flag = b->n, add_le(b, 1, 1);
  add_text(b, "general.alignment"), add_le(b, 4, 4), g->align = b->n, add_le(b, 16, 4);
  add_text(b, "e.f64"), add_le(b, 12, 4), add_le(b, 0x3ff8000000000000, 8);
  g->name = b->n, add_text(b, "w"), g->rank = b->n, add_le(b, 2, 4), g->dim = b->n, add_le(b, 3, 8),
  add_le(b, 2, 8), g->ttype = b->n, add_le(b, 0, 4), g->offset = b->n, add_le(b, 0, 8);
  add_text(b, "q"), add_le(b, 1, 4), add_le(b, 32, 8), add_le(b, 2, 4), add_le(b, 32, 8);
  while (b->n % 16)
    b->at[b->n++] = 0;
  for (int i = 0; i < 6; i++) {
    float f = (float)i;
    add(b, &f, 4);
  }
  add_le(b, 0, 8), add_le(b, 0x4000, 2), add(b, "\x9f\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16);
}
#endif
