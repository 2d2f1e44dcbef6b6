/* archive.c: zip, tar and gzip. In: the archive's bytes. Out: its regular files by name, as views if they
 * are stored uncompressed. A zip is read by its central directory, which is checked against each file's
 * own header. Files may not overlap, and the bytes that are unpacked have a limit. */
#include "io_private.h"
#ifdef TG_HAVE_ZLIB
#include <zlib.h>
#endif
#include <stdlib.h>

static uint64_t unpacked_limit(uint64_t n) {
  return (n > UINT64_MAX / 128 ? UINT64_MAX / 128 : n) * 64 + (16 << 20);
}

#ifdef TG_HAVE_ZLIB
static voidpf z_alloc(voidpf ctx, uInt n, uInt size) { return tg_alloc(ctx, (size_t)n * size); }

static void z_free(voidpf ctx, voidpf p) { tg_free(ctx, p); }

/* Unpacks s->p[at..end) until the stream ends, and appends to *out. Afterwards *at is the place after the
 * stream. */
static bool inflate_from(const Source *s, uint64_t *at, uint64_t end, int bits, uint64_t limit, uint8_t **out,
                         size_t *n, size_t *cap) {
  z_stream z = {.zalloc = z_alloc, .zfree = z_free, .opaque = s->ctx};
  int r = inflateInit2(&z, bits);
  while (r == Z_OK) {
    uint64_t left = end - *at;
    uint8_t *more = io_grow(s->ctx, *out, *n, cap, 1);
    if (!more) {
      r = Z_MEM_ERROR;
      break;
    }
    *out = more;
    size_t room = *cap - *n > 1 << 30 ? 1 << 30 : *cap - *n;
    z.next_in = (Bytef *)(uintptr_t)(s->p + *at);
    z.avail_in = left > 1 << 30 ? 1 << 30 : (uInt)left;
    z.next_out = *out + *n;
    z.avail_out = (uInt)room;
    uInt had = z.avail_in;
    r = inflate(&z, Z_NO_FLUSH);
    *at += had - z.avail_in;
    *n += room - z.avail_out;
    if (r == Z_OK && *n > limit) {
      inflateEnd(&z);
      return io_fail(s, TG_ERR_LIMIT, "more than %llu bytes unpacked", (unsigned long long)limit);
    }
    if (r == Z_OK && had == z.avail_in && room == z.avail_out) r = Z_BUF_ERROR;
  }
  const char *why = r == Z_BUF_ERROR ? "it ends too early" : z.msg ? z.msg : "not deflated data";
  if (r != Z_STREAM_END && r != Z_MEM_ERROR) io_fail(s, TG_ERR_VALUE, "unpacking: %s", why);
  inflateEnd(&z);
  if (r == Z_MEM_ERROR) return io_fail(s, TG_ERR_NOMEM, "out of memory");
  return r == Z_STREAM_END && (*n <= limit || io_fail(s, TG_ERR_LIMIT, "more than %llu bytes unpacked",
                                                      (unsigned long long)limit));
}

TgTensor *tg_gunzip(TgTensor *file) {
  Source s;
  uint8_t *out = NULL;
  size_t n = 0, cap = 0;
  uint64_t at = 0;
  TgTensor *t = NULL;
  bool ok = source_open(&s, file, "gunzip", NULL);
  if (ok) ok = (s.n >= 18 && s.p[0] == 0x1f && s.p[1] == 0x8b) || io_fail(&s, TG_ERR_VALUE, "not gzip data");
  if (ok) { /* the last word should be the length: reserve that much at once */
    uint64_t said = le32(s.p + s.n - 4), most = unpacked_limit(s.n);
    cap = (size_t)(said < most ? said : most) + 1;
    ok = (out = tg_alloc(s.ctx, cap)) != NULL;
  }
  while (ok && at < s.n) {
    if (at && s.p[at] == 0) {
      at++;
      continue;
    } /* zeros after the last member are padding */
    ok = inflate_from(&s, &at, s.n, 15 + 16, unpacked_limit(s.n), &out, &n, &cap);
  }
  if (ok) t = tg_from_bytes(s.ctx, out, n, TG_U8);
  if (file) tg_free(s.ctx, out), source_close(&s);
  return t;
}

static TgTensor *unpacked(const Source *s, uint64_t at, uint64_t packed, uint64_t size, uint32_t crc,
                          uint64_t limit, const char *name, int len) {
  uint8_t *out = NULL;
  size_t n = 0, cap = (size_t)size + 1;
  uint64_t from = at;
  TgTensor *t = NULL;
  if (size > limit) {
    io_fail(s, TG_ERR_LIMIT, "%.*s: %llu bytes unpacked, more than the limit", len, name,
            (unsigned long long)size);
    return NULL;
  }
  if (size / 1032 > packed) {
    io_fail(s, TG_ERR_VALUE, "%.*s: %llu bytes cannot come of %llu", len, name, (unsigned long long)size,
            (unsigned long long)packed);
    return NULL;
  }
  bool ok = (out = tg_alloc(s->ctx, cap)) && inflate_from(s, &at, at + packed, -15, size, &out, &n, &cap);
  if (ok)
    ok = (n == size && at - from == packed && crc32_z(crc32_z(0, NULL, 0), out, n) == crc) ||
         io_fail(s, TG_ERR_VALUE, "%.*s: its size or checksum is wrong", len, name);
  if (ok) t = tg_from_bytes(s->ctx, out, n, TG_U8);
  tg_free(s->ctx, out);
  return t;
}
#else
TgTensor *tg_gunzip(TgTensor *file) {
  if (file) tg_set_error(tg_context(file), TG_ERR_STATE, "gunzip: built without zlib");
  return NULL;
}

static TgTensor *unpacked(const Source *s, uint64_t at, uint64_t packed, uint64_t size, uint32_t crc,
                          uint64_t limit, const char *name, int len) {
  (void)at, (void)packed, (void)size, (void)crc, (void)limit;
  io_fail(s, TG_ERR_STATE, "%.*s is deflated: built without zlib", len, name);
  return NULL;
}
#endif

/* Records where a file of the archive is in memory; t is its tensor. */
static bool part_add(const Source *s, Source **parts, size_t n, size_t *cap, TgTensor *t, const uint8_t *at) {
  Source *more = parts ? io_grow(s->ctx, *parts, n, cap, sizeof *more) : NULL;
  if (!parts) return true;
  if (!more) return false;
  *parts = more;
  more[n] = (Source){s->ctx, t, at, (uint64_t)tg_numel(t), NULL, s->what, s->name};
  return true;
}

static TgState *ended_with(const Source *s, bool ok, TgState *out, Source **parts) {
  if (ok) return out;
  if (parts) {
    tg_free(s->ctx, *parts);
    *parts = NULL;
  }
  tg_state_free(out);
  return NULL;
}

/* ---- zip */
typedef struct Member {
  const char *name;
  uint32_t len, method, crc;
  uint64_t packed, size, header, data;
} Member;

bool zip_is(const Source *s) { return s->n >= 22 && (le32(s->p) == 0x04034b50 || le32(s->p) == 0x06054b50); }

/* Finds the end record, which says where the central directory is: the last one whose comment ends exactly
 * at the end of the file. */
static bool directory_find(const Source *s, uint64_t *at, uint64_t *nbytes, uint64_t *count) {
  for (uint64_t back = 22; back <= s->n && back <= 22 + 65535; back++) {
    const uint8_t *p = s->p + s->n - back;
    if (le32(p) != 0x06054b50 || le16(p + 20) != back - 22) continue;
    if (le16(p + 4) != le16(p + 6) || le16(p + 8) != le16(p + 10))
      return io_fail(s, TG_ERR_VALUE, "a zip in parts is not read here");
    *count = le16(p + 10);
    *nbytes = le32(p + 12);
    *at = le32(p + 16);
    uint64_t end = s->n - back;
    bool wide = *count == 0xffff || *nbytes == 0xffffffff || *at == 0xffffffff;
    if (wide && back + 20 <= s->n && le32(p - 20) == 0x07064b50) {
      uint64_t far = le64(p - 12);
      if (!inside(far, 56, end - 20) || le32(s->p + far) != 0x06064b50)
        return io_fail(s, TG_ERR_VALUE, "the zip64 end record is not where it should be");
      const uint8_t *w = s->p + far;
      *count = le64(w + 32);
      *nbytes = le64(w + 40);
      *at = le64(w + 48);
      end = far;
    }
    if (!inside(*at, *nbytes, end) || *count > *nbytes / 46)
      return io_fail(s, TG_ERR_VALUE, "the directory of the zip lies outside of the file");
    return true;
  }
  return io_fail(s, TG_ERR_VALUE, "no zip: the end record is missing");
}

/* An extra field holds the sizes that do not fit in 32 bits, in this order, and only those. */
static bool wide_sizes(const uint8_t *x, uint32_t n, Member *m) {
  bool size = m->size == 0xffffffff, packed = m->packed == 0xffffffff, header = m->header == 0xffffffff;
  if (!size && !packed && !header) return true;
  for (uint32_t at = 0; at + 4 <= n;) {
    uint32_t id = le16(x + at), len = le16(x + at + 2), used = 0;
    if (len > n - at - 4) return false;
    const uint8_t *p = x + at + 4;
    at += 4 + len;
    if (id != 1) continue;
    if (size) {
      if (used + 8 > len) return false;
      m->size = le64(p + used);
      used += 8;
    }
    if (packed) {
      if (used + 8 > len) return false;
      m->packed = le64(p + used);
      used += 8;
    }
    if (header) {
      if (used + 8 > len) return false;
      m->header = le64(p + used);
      used += 8;
    }
    return true;
  }
  return false;
}

static int by_place(const void *a, const void *b) {
  const Member *x = a, *y = b;
  return x->header < y->header ? -1 : x->header > y->header;
}

static bool member_read(const Source *s, uint64_t *at, uint64_t end, uint64_t directory, Member *m) {
  const uint8_t *p = s->p + *at;
  if (!inside(*at, 46, end) || le32(p) != 0x02014b50)
    return io_fail(s, TG_ERR_VALUE, "an entry of the directory is damaged");
  uint32_t n = le16(p + 28), extra = le16(p + 30), comment = le16(p + 32);
  if (!inside(*at, 46u + n + extra + comment, end))
    return io_fail(s, TG_ERR_VALUE, "an entry of the directory is cut off");
  *m = (Member){(const char *)p + 46, n, le16(p + 10), le32(p + 16), le32(p + 20), le32(p + 24),
                le32(p + 42),         0};
  *at += 46u + n + extra + comment;
  if (!n || memchr(m->name, 0, n))
    return io_fail(s, TG_ERR_VALUE, "an entry of the directory has no proper name");
  if (!wide_sizes(p + 46 + n, extra, m))
    return io_fail(s, TG_ERR_VALUE, "%.*s: its zip64 sizes are missing", (int)n, m->name);
  if (le16(p + 8) & 1) return io_fail(s, TG_ERR_VALUE, "%.*s is encrypted", (int)n, m->name);
  if (m->method != 0 && m->method != 8)
    return io_fail(s, TG_ERR_VALUE, "%.*s: compression method %u is not read here", (int)n, m->name,
                   m->method);
  const uint8_t *h = inside(m->header, 30, directory) ? s->p + m->header : NULL;
  if (!h || le32(h) != 0x04034b50 || le16(h + 8) != m->method ||
      !inside(m->header, 30u + le16(h + 26) + le16(h + 28), directory) || le16(h + 26) != n ||
      memcmp(h + 30, m->name, n))
    return io_fail(s, TG_ERR_VALUE, "%.*s: its header is not where the directory says, or says otherwise",
                   (int)n, m->name);
  m->data = m->header + 30 + n + le16(h + 28);
  if (!inside(m->data, m->packed, directory) || (!m->method && m->packed != m->size))
    return io_fail(s, TG_ERR_VALUE, "%.*s: its size is wrong", (int)n, m->name);
  return true;
}

TgState *zip_read(const Source *s, Source **parts) {
  size_t pcap = 0;
  uint64_t at = 0, nbytes = 0, count = 0, limit = unpacked_limit(s->n), directory;
  if (!directory_find(s, &at, &nbytes, &count)) return NULL;
  directory = at;
  Member *m = tg_alloc(s->ctx, (size_t)(count + 1) * 2 * sizeof *m);
  TgState *out = m ? tg_state_new(s->ctx) : NULL;
  bool ok = out && !tg_scope_begin(s->ctx), scope = ok;
  for (uint64_t i = 0; i < count && ok; i++)
    ok = member_read(s, &at, directory + nbytes, directory, &m[i]);
  if (ok) {
    Member *sorted = m + count + 1; /* names keep the order of the directory */
    memcpy(sorted, m, (size_t)count * sizeof *m);
    qsort(sorted, (size_t)count, sizeof *m, by_place);
    for (uint64_t i = 1; i < count && ok; i++)
      ok = sorted[i].header >= sorted[i - 1].data + sorted[i - 1].packed ||
           io_fail(s, TG_ERR_VALUE, "%.*s overlaps the file before it", (int)sorted[i].len, sorted[i].name);
  }
  for (uint64_t i = 0; i < count && ok; i++) {
    if (m[i].name[m[i].len - 1] == '/') continue; /* a folder */
    TgTensor *t = m[i].method ? unpacked(s, m[i].data, m[i].packed, m[i].size, m[i].crc, limit, m[i].name,
                                         (int)m[i].len)
                              : source_view(s, m[i].data, TG_U8, 1, &(int64_t){(int64_t)m[i].size});
    if (m[i].method && t) limit -= m[i].size;
    ok = t && part_add(s, parts, tg_state_count(out), &pcap, t, m[i].method ? NULL : s->p + m[i].data) &&
         (state_own(out, m[i].name, m[i].len, t) ||
          io_fail(s, TG_ERR_VALUE, "%.*s is there twice", (int)m[i].len, m[i].name));
  }
  if (scope) tg_scope_end(s->ctx);
  tg_free(s->ctx, m);
  return ended_with(s, ok, out, parts);
}

/* ---- tar: blocks of 512 bytes */
/* octal text, or a big-endian number after a byte of 0x80 */
static bool number(const uint8_t *p, int n, uint64_t *v) {
  *v = 0;
  if (p[0] & 0x80) {
    if (p[0] != 0x80) return false;
    for (int i = 1; i < n; i++) {
      if (*v >> 55) return false;
      *v = *v << 8 | p[i];
    }
    return true;
  }
  int i = 0;
  while (i < n && p[i] == ' ')
    i++;
  for (; i < n && p[i] >= '0' && p[i] <= '7'; i++) {
    if (*v >> 59) return false;
    *v = *v << 3 | (uint64_t)(p[i] - '0');
  }
  for (; i < n; i++)
    if (p[i] != ' ' && p[i] != 0) return false;
  return true;
}

static bool header_ok(const uint8_t *h) {
  uint64_t want, sum = 0;
  for (int i = 0; i < 512; i++)
    sum += i >= 148 && i < 156 ? ' ' : h[i];
  return number(h + 148, 8, &want) && want == sum;
}

bool tar_is(const Source *s) { return s->n >= 1024 && header_ok(s->p) && s->p[0]; }

static bool all_zero(const uint8_t *p) {
  for (int i = 0; i < 512; i++)
    if (p[i]) return false;
  return true;
}

/* What pax records "length key=value
 * " set for the next header. */
typedef struct Next {
  const char *name;
  size_t name_len;
  uint64_t size;
  bool has_size;
} Next;

static bool pax_read(const Source *s, const uint8_t *p, uint64_t n, Next *next) {
  for (uint64_t at = 0; at < n;) {
    uint64_t len = 0, i = at;
    for (; i < n && i < at + 10 && p[i] >= '0' && p[i] <= '9'; i++)
      len = len * 10 + (uint64_t)(p[i] - '0');
    if (i == n || p[i] != ' ' || len < i - at + 4 || !inside(at, len, n) || p[at + len - 1] != '\n')
      return io_fail(s, TG_ERR_VALUE, "a pax record is damaged");
    const char *key = (const char *)p + i + 1;
    const char *end = (const char *)p + at + len - 1;
    const char *eq = memchr(key, '=', (size_t)(end - key));
    if (!eq) return io_fail(s, TG_ERR_VALUE, "a pax record is damaged");
    size_t klen = (size_t)(eq - key);
    if (klen == 4 && !memcmp(key, "path", 4)) {
      next->name = eq + 1;
      next->name_len = (size_t)(end - eq - 1);
    }
    if (klen == 4 && !memcmp(key, "size", 4)) {
      next->size = 0;
      next->has_size = true;
      for (const char *d = eq + 1; d < end; d++) {
        if (*d < '0' || *d > '9' || next->size > UINT64_MAX / 20)
          return io_fail(s, TG_ERR_VALUE, "a pax size is no number");
        next->size = next->size * 10 + (uint64_t)(*d - '0');
      }
    }
    if (klen > 10 && !memcmp(key, "GNU.sparse", 10))
      return io_fail(s, TG_ERR_VALUE, "a sparse file is not read here");
    at += len;
  }
  return true;
}

/* The name in a header: prefix and name, without trailing 0 bytes; at most 256 bytes. */
static size_t header_name(const uint8_t *h, char name[257]) {
  size_t n = 0, prefix = !memcmp(h + 257, "ustar\0", 6) ? strnlen((const char *)h + 345, 155) : 0;
  if (prefix) {
    memcpy(name, h + 345, prefix);
    name[prefix] = '/';
    n = prefix + 1;
  }
  size_t own = strnlen((const char *)h, 100);
  memcpy(name + n, h, own);
  return n + own;
}

static bool is_file(char type) { return type == 0 || type == '0' || type == '7'; }

/* A member that does not itself describe the next header. It is kept if it is a file. Its name is in its
 * header, or in a header before it. */
static bool member_keep(const Source *s, const uint8_t *h, uint64_t at, uint64_t size, Next *next,
                        TgState *out, Source **parts, size_t *cap) {
  char own[257];
  const char *name = next->name;
  size_t n = next->name_len;
  if (!name) {
    n = header_name(h, own);
    name = own;
  }
  *next = (Next){0};
  if (!is_file((char)h[156]) || (n && name[n - 1] == '/')) return true;
  if (!n || memchr(name, 0, n)) return io_fail(s, TG_ERR_VALUE, "a file without a proper name");
  TgTensor *t = source_view(s, at, TG_U8, 1, &(int64_t){(int64_t)size});
  if (!t || !part_add(s, parts, tg_state_count(out), cap, t, s->p + at)) return false;
  return state_own(out, name, n, t) ||
         io_fail(s, TG_ERR_VALUE, "%.*s is there twice", (int)(n > 200 ? 200 : n), name);
}

/* Reads one header and what it describes. Afterwards *at is the place of the next header. */
static bool header_read(const Source *s, uint64_t *at, Next *next, TgState *out, Source **parts,
                        size_t *cap) {
  const uint8_t *h = s->p + *at;
  uint64_t size = 0;
  if (!header_ok(h) || !number(h + 124, 12, &size))
    return io_fail(s, TG_ERR_VALUE, "no tar: the header at byte %llu is damaged", (unsigned long long)*at);
  char type = (char)h[156];
  if (is_file(type) && next->has_size) size = next->size;
  if (type >= '1' && type <= '6') size = 0; /* links, devices and folders have none */
  *at += 512;
  if (!inside(*at, size, s->n)) return io_fail(s, TG_ERR_VALUE, "the tar is cut off");
  bool ok = true;
  if (type == 'L') {
    next->name = (const char *)s->p + *at;
    next->name_len = strnlen(next->name, (size_t)size);
  } else if (type == 'x')
    ok = pax_read(s, s->p + *at, size, next);
  else if (type == 'S')
    ok = io_fail(s, TG_ERR_VALUE, "a sparse file is not read here");
  else if (type != 'K' && type != 'g')
    ok = member_keep(s, h, *at, size, next, out, parts, cap);
  uint64_t padded = (size + 511) & ~(uint64_t)511;
  *at = padded <= s->n - *at ? *at + padded : s->n;
  return ok;
}

/* A header of zeros ends the archive. */
TgState *tar_read(const Source *s, Source **parts) {
  size_t cap = 0;
  TgState *out = tg_state_new(s->ctx);
  Next next = {0};
  uint64_t at = 0;
  bool ok = out && !tg_scope_begin(s->ctx), scope = ok;
  while (ok) {
    if (!inside(at, 512, s->n))
      ok = io_fail(s, TG_ERR_VALUE, at ? "the tar is cut off" : "no tar");
    else if (all_zero(s->p + at))
      break;
    else
      ok = header_read(s, &at, &next, out, parts, &cap);
  }
  if (scope) tg_scope_end(s->ctx);
  return ended_with(s, ok, out, parts);
}

static TgState *extract(TgTensor *file, const char *what, TgState *(*read)(const Source *, Source **)) {
  Source s;
  TgState *out = source_open(&s, file, what, NULL) ? read(&s, NULL) : NULL;
  if (file) source_close(&s);
  return out;
}

TgState *tg_zip_extract(TgTensor *file) { return extract(file, "zip_extract", zip_read); }

TgState *tg_tar_extract(TgTensor *file) { return extract(file, "tar_extract", tar_read); }
