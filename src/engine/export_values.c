/* export_values.c: the contents of memories, for a captured function as C. In: a memory and its value.
 * Out: an array of C, which has the same bits on every compiler, or the bytes of a file. */
#include "engine/export.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *export_type(DType d) {
  static const char *const type[DT_COUNT] = {
#define DTYPE(name, text, bytes, storage) storage,
#include "uop/dtypes.def"
  };
  return type[d];
}

/* Writes the shortest decimal that reads back as v. The locale may have another decimal point. */
static void put_float(Str *out, double v, bool f64) {
  char s[40];
  for (int digits = f64 ? 15 : 6; digits <= 17; digits++) {
    snprintf(s, sizeof s, "%.*g", digits, v);
    /* A float is also checked as a double, because some compilers evaluate constants in double. */
    double read = strtod(s, NULL);
    if (f64 ? read == v : strtof(s, NULL) == (float)v && (float)read == (float)v) break;
  }
  bool whole = true;
  for (char *p = s; *p; p++) {
    if (!strchr("0123456789+-e", *p)) *p = '.';
    whole &= *p != '.' && *p != 'e';
  }
  str_put(out, s);
  str_put(out, whole ? ".0" : "");
  str_put(out, f64 ? "" : "f");
}

static double float_at(const ExportMemory *m, int64_t i) {
  float f;
  double d;
  if (m->dtype == DT_F64) return memcpy(&d, (const char *)m->value + 8 * i, 8), d;
  return memcpy(&f, (const char *)m->value + 4 * i, 4), f;
}

static void put_integer(Str *out, const ExportMemory *m, int64_t i, bool bits) {
  size_t size = dtype_size(m->dtype);
  const char *at = (const char *)m->value + (size_t)i * size;
  bool is_signed =
      !bits && (m->dtype == DT_I8 || m->dtype == DT_I16 || m->dtype == DT_I32 || m->dtype == DT_I64);
  uint64_t u = 0;
  memcpy(&u, at, size); /* this library runs only on little-endian machines */
  int shift = 64 - 8 * (int)size;
  int64_t s = (int64_t)(u << shift) >> shift;
  if (is_signed && size == 8 && s == INT64_MIN)
    str_put(out, "-9223372036854775807ll - 1");
  else if (is_signed && size == 4 && s == INT32_MIN)
    str_put(out, "-2147483647 - 1");
  else if (is_signed)
    str_int(out, s), str_put(out, size == 8 ? "ll" : "");
  else {
    char digits[24];
    snprintf(digits, sizeof digits, size == 8 ? "%lluull" : "%lluu", (unsigned long long)u);
    str_put(out, digits);
  }
}

static bool all_zero(const ExportMemory *m) {
  const char *p = m->value;
  for (int64_t i = m->nelem * (int64_t)dtype_size(m->dtype); i-- > 0;)
    if (p[i]) return false;
  return true;
}

/* C has no literal for an infinity or a NaN, so an array with one is written as bits. */
static bool by_bits(const ExportMemory *m) {
  bool is_float = m->dtype == DT_F32 || m->dtype == DT_F64;
  for (int64_t i = 0; is_float && i < m->nelem; i++)
    if (!isfinite(float_at(m, i))) return true;
  return false;
}

static void put_numbers(Str *out, const ExportMemory *m, bool bits) {
  bool is_float = !bits && (m->dtype == DT_F32 || m->dtype == DT_F64);

  enum { LINE = 110, NUMBER = 26 };

  size_t line = out->len;
  for (int64_t i = 0; i < m->nelem && !out->oom; i++) {
    if (i) str_put(out, ",");
    if (out->len - line > LINE - NUMBER) str_put(out, "\n"), line = out->len;
    if (is_float)
      put_float(out, float_at(m, i), m->dtype == DT_F64);
    else
      put_integer(out, m, i, bits);
  }
}

/* The prefix w_ is needed because the name may be that of a C function. */
void export_memory(Str *out, const ExportMemory *m) {
  const char *type = export_type(m->dtype);
  bool bits = by_bits(m);
  if (bits)
    str_printf(out, "static const union { %s bits[%lld]; %s at[%lld]; } w_%s = {{\n",
               m->dtype == DT_F64 ? "u64" : "u32", (long long)m->nelem, type, (long long)m->nelem, m->name);
  else
    str_printf(out, "static const struct { %s at[%lld]; } w_%s = {{\n", type, (long long)m->nelem, m->name);
  if (all_zero(m))
    str_put(out, "0");
  else
    put_numbers(out, m, bits);
  str_put(out, "}};\n");
}

/* State that is all zeros needs no constant, because a reset clears it. */
bool export_written(const Export *x, const ExportMemory *m) {
  return m->nelem && !m->unused && !x->o.weights_apart && !(m->state && all_zero(m));
}

/* Writes the elements of a memory in the byte order of the file. */
static void put_bytes(Str *out, const ExportMemory *m, bool big_endian) {
  size_t size = dtype_size(m->dtype);
  if (!big_endian || size == 1) {
    str_putn(out, m->value, (size_t)m->nelem * size);
    return;
  }
  for (int64_t i = 0; i < m->nelem; i++)
    for (size_t k = size; k-- > 0;)
      str_putn(out, (const char *)m->value + (size_t)i * size + k, 1);
}

bool export_weights(Export *x, Str *out) {
  for (int state = 0; state < 2; state++) {
    size_t begin = out->len;
    for (size_t i = 0; i < x->memories.len; i++) {
      const ExportMemory *m = &x->memories.at[i];
      static const char zeros[8];
      if (m->unused || m->state != (state == 1)) continue;
      put_bytes(out, m, x->o.big_endian);
      str_putn(out, zeros, -(out->len - begin) & 7);
    }
  }
  return !out->oom;
}
