/* npy.c: NumPy's arrays, versions 1 to 3 of the format (numpy.lib.format). In: a file, or a tensor. Out: a
 * tensor, or a file. The tensor is a view of the file if its bytes are in this machine's order; other byte
 * orders and column-major arrays are permutations of such a view. */
#include "io_private.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Header {
  TgDType dtype;
  bool big, columns;
  int ndim;
  int64_t dims[TG_MAX_RANK];
  uint64_t at; /* where the data begins */
} Header;

static const struct {
  const char *code;
  TgDType dtype;
} codes[] = {{"b1", TG_BOOL}, {"i1", TG_I8},  {"u1", TG_U8},  {"i2", TG_I16}, {"u2", TG_U16}, {"i4", TG_I32},
             {"u4", TG_U32},  {"i8", TG_I64}, {"u8", TG_U64}, {"f2", TG_F16}, {"f4", TG_F32}, {"f8", TG_F64}};

enum { NCODES = sizeof codes / sizeof *codes, MAX_HEADER = 1 << 16 };

/* The text after 'key': in the header, which is a dictionary as Python prints it. Returns NULL if the key
 * is not there. */
static const char *field(const char *text, const char *key) {
  char quoted[40];
  snprintf(quoted, sizeof quoted, "'%s':", key);
  const char *p = strstr(text, quoted);
  if (!p) return NULL;
  p += strlen(quoted);
  while (*p == ' ')
    p++;
  return p;
}

static bool dtype_read(const Source *s, const char *p, Header *h) {
  if (!p || *p != '\'' || !p[1]) return io_fail(s, TG_ERR_VALUE, "the header has no descr of one dtype");
  h->big = p[1] == '>';
  for (int i = 0; i < NCODES; i++)
    if (!strncmp(p + 2, codes[i].code, 2) && p[4] == '\'') h->dtype = codes[i].dtype;
  return h->dtype || io_fail(s, TG_ERR_VALUE, "the dtype %.12s is not read here", p);
}

static bool shape_read(const Source *s, const char *p, Header *h) {
  if (!p || *p++ != '(') return io_fail(s, TG_ERR_VALUE, "the header has no shape");
  while (*p != ')') {
    char *end;
    errno = 0;
    long long v = strtoll(p, &end, 10);
    if (end == p || errno || v < 0) return io_fail(s, TG_ERR_VALUE, "the shape in the header: %.40s", p);
    if (h->ndim == TG_MAX_RANK) return io_fail(s, TG_ERR_LIMIT, "more than %d axes", TG_MAX_RANK);
    h->dims[h->ndim++] = v;
    for (p = end; *p == ',' || *p == ' ';)
      p++;
  }
  return true;
}

static bool header_read(const Source *s, Header *h) {
  static const uint8_t magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
  if (s->n < 12 || memcmp(s->p, magic, sizeof magic)) return io_fail(s, TG_ERR_VALUE, "no npy file");
  int version = s->p[6];
  if (version < 1 || version > 3) return io_fail(s, TG_ERR_VALUE, "version %d of the format", version);
  uint64_t from = version == 1 ? 10 : 12, n = version == 1 ? le16(s->p + 8) : le32(s->p + 8);
  if (!inside(from, n, s->n) || n >= MAX_HEADER) return io_fail(s, TG_ERR_VALUE, "the header is cut off");
  char *text = tg_alloc(s->ctx, n + 1);
  if (!text) return false;
  memcpy(text, s->p + from, n);
  const char *columns = field(text, "fortran_order");
  bool ok = dtype_read(s, field(text, "descr"), h) && shape_read(s, field(text, "shape"), h);
  h->columns = columns && !strncmp(columns, "True", 4);
  h->at = from + n;
  tg_free(s->ctx, text);
  return ok;
}

static TgTensor *read_tensor(const Source *s, const Header *h) {
  int64_t dims[TG_MAX_RANK], order[TG_MAX_RANK], n = 1, size = (int64_t)tg_dtype_size(h->dtype);
  for (int i = 0; i < h->ndim; i++) {
    int from = h->columns ? h->ndim - 1 - i : i;
    dims[i] = h->dims[from];
    order[i] = h->ndim - 1 - i;
    if (__builtin_mul_overflow(n, dims[i], &n)) {
      n = INT64_MAX / 16;
      i = h->ndim;
    }
  }
  uint64_t room = s->n > h->at ? s->n - h->at : 0;
  if (n > INT64_MAX / 16 || (uint64_t)n * (uint64_t)size != room) {
    io_fail(s, TG_ERR_VALUE, "%llu bytes of data, which is not what its shape says",
            (unsigned long long)room);
    return NULL;
  }
  if (!n) return tg_zeros(s->ctx, h->ndim, h->dims, .dtype = h->dtype);
  TgTensor *t;
  if (h->big && size > 1) {
    t = source_view(s, h->at, TG_U8, 2, (const int64_t[]){n, size});
    t = tg_reshape(tg_bitcast(tg_flip(t, 1, (const int64_t[]){1}), h->dtype), h->ndim, dims);
  } else
    t = source_view(s, h->at, h->dtype, h->ndim, dims);
  return h->columns && h->ndim > 1 ? tg_permute(t, h->ndim, order) : t;
}

static TgTensor *load(TgTensor *file, const char *path) {
  Source s;
  Header h = {0};
  if (!source_open(&s, file, "npy", path)) return NULL;
  TgTensor *t = header_read(&s, &h) ? read_tensor(&s, &h) : NULL;
  source_close(&s);
  return t;
}

TgTensor *tg_npy_load(TgTensor *file) { return load(file, NULL); }

TgTensor *tg_npy_load_file(TgContext *ctx, const char *path) {
  return ctx && path ? load(file_tensor(ctx, path), path) : NULL;
}

/* The header is padded with blanks to a multiple of 64 bytes, as NumPy does. */
static int header_write(const TgTensor *t, const char *code, uint8_t *to, size_t cap) {
  char shape[TG_MAX_RANK * 22] = "";
  size_t k = 0;
  for (int i = 0; i < tg_ndim(t); i++)
    k += (size_t)snprintf(shape + k, sizeof shape - k, i ? " %lld," : "%lld,", (long long)tg_dim(t, i));
  if (tg_ndim(t) > 1) shape[k - 1] = 0;
  const char *order = code[1] == '1' ? "|" : "<";
  int n = snprintf((char *)to + 10, cap - 10, "{'descr': '%s%s', 'fortran_order': False, 'shape': (%s), }",
                   order, code, shape);
  int all = (10 + n + 1 + 63) / 64 * 64;
  memcpy(to, "\x93NUMPY\1\0", 8);
  memset(to + 10 + n, ' ', (size_t)(all - 10 - n));
  to[all - 1] = '\n';
  to[8] = (uint8_t)((all - 10) & 255);
  to[9] = (uint8_t)((all - 10) >> 8);
  return all;
}

TgStatus tg_npy_save(TgTensor *t, const char *path) {
  TgContext *ctx = tg_context(t);
  const char *code = NULL;
  uint8_t head[640];
  if (!ctx || !path) return TG_ERR_VALUE;
  for (int i = 0; i < NCODES; i++)
    if (codes[i].dtype == tg_dtype(t)) code = codes[i].code;
  if (!code) {
    ctx_fail(ctx, TG_ERR_DTYPE, "npy_save: NumPy has no %s", tg_dtype_name(tg_dtype(t)));
    return TG_ERR_DTYPE;
  }
  int nhead = header_write(t, code, head, sizeof head);
  size_t n = tg_nbytes(t);
  void *p = tg_alloc(ctx, n + 1);
  NewFile f = {.fd = -1};
  bool ok = p && !tg_read(t, p, n);
  if (ok) {
    ok = file_begin(&f, path) && file_write(&f, head, (size_t)nhead) && file_write(&f, p, n);
    ok = file_end(&f, ok);
    if (!ok) ctx_fail(ctx, TG_ERR_IO, "npy_save: %.600s: %s", path, strerror(errno));
  }
  tg_free(ctx, p);
  return ok ? TG_OK : tg_error(ctx);
}
