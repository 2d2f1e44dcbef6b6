/* files.c: damaged files for every reader of tg_io.h. In: a seed. Out: false, and the bytes as C text, when a
 * reader refuses without a reason, or reports an error beside its result. A read past the end or a leak is
 * for the sanitizers to see: the bytes stand in memory of their own size. */
#define _GNU_SOURCE
#include "files.h"
#include "tests/files/samples.h"
#include "tg_io.h"
#include <stdlib.h>

static uint64_t state;

static uint32_t draw(void) { /* splitmix64 */
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u, z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (uint32_t)((z ^ z >> 31) >> 32);
}

static size_t below(size_t n) { return n ? draw() % n : 0; }

typedef enum Sample { SAFE, ZIP, ZIP_WIDE, GZ, TAR, CHECKPOINT, GGUF, IDX, PROGRAM, SAMPLES } Sample;

static void sample(Sample k, Bytes *b) {
  static const char head[] =
      "{\"__metadata__\":{\"a\":\"b\"},\"x\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
      "\"y\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[24,26]}}";
  static const char program[] =
      "{\"__metadata__\":{\"format\":\"tinygrad.program\",\"program\":\"tinygrad program 1\\n"
      "random 5 1 20\\nm0 = input f32 (2) \\\"x\\\"\\nm1 = output f32 (2) \\\"y\\\"\\nm2 = draw 4\\n"
      "m3 = memory f32 (1) \\\"w\\\"\\nm4 = scratch f32 2\\nstep m0 m3 -> m4\\nu0 = BUFFER[f32, 0, 2]\\n"
      "u1 = BUFFER[f32, 1, 1]\\nu2 = EXPAND[(2)](u1)\\nu3 = MUL(u0, u2)\\nend\\nstep m3 m4 -> -\\n"
      "u0 = BUFFER[f32, 0, 1]\\nu1 = BUFFER[f32, 1, 2]\\nu2 = REDUCE_AXIS[ADD, (0)](u1)\\n"
      "u3 = STORE(u0, u2)\\nu4 = AFTER(u0, u3)\\nend\\ncopy m4 m1\\n\"},"
      "\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
  static const unsigned char idx[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};
  Gguf g;
  b->n = 0;
  switch (k) {
  case SAFE:
    add_le(b, sizeof head - 1, 8), add(b, head, sizeof head - 1), add_le(b, 0x3f800000, 8), add_le(b, 0, 8),
        add_le(b, 0, 8), add_le(b, 0x3f80, 2);
    break;
  case ZIP:
  case ZIP_WIDE: zip_write(b, zip_files, 4, k == ZIP_WIDE); break;
  case GZ: add(b, gzipped, sizeof gzipped), add(b, gzipped, sizeof gzipped); break;
  case TAR:
    tar_add(b, "pax", 'x', "10 size=6\n", 10, NULL), tar_add(b, "a", '0', "fourth", 6, NULL),
        tar_add(b, "././@LongLink", 'L', "long", 5, NULL), tar_add(b, "b", '0', "x", 1, "p");
    add_le(b, 0, 1024);
    break;
  case CHECKPOINT: checkpoint_write(b, good_pickle, sizeof good_pickle - 1); break;
  case GGUF: gguf_write(&g), *b = g.b; break;
  case PROGRAM:
    add_le(b, sizeof program - 1, 8), add(b, program, sizeof program - 1), add_le(b, 0x3f800000, 4);
    break;
  default: add(b, idx, sizeof idx); break;
  }
}

static void spoil(Bytes *b) {
  static const uint64_t odd[] = {0,
                                 1,
                                 2,
                                 7,
                                 0x7f,
                                 0x80,
                                 0xff,
                                 0x100,
                                 0x7fff,
                                 0xffff,
                                 0x10000,
                                 0x7fffffff,
                                 0x80000000,
                                 0xffffffff,
                                 0x100000000,
                                 0x3fffffffffffffff,
                                 0x7fffffffffffffff,
                                 0x8000000000000000,
                                 0xfffffffffffffff0,
                                 0xffffffffffffffff};
  for (size_t i = 1 + below(4); i-- && b->n > 16;) {
    size_t at = below(b->n - 8), n;
    switch (below(7)) {
    case 0: b->at[at] ^= (unsigned char)(1 << below(8)); break;
    case 1: b->at[at] = (unsigned char)draw(); break;
    case 2:
    case 3: {
      uint64_t v = odd[below(sizeof odd / sizeof *odd)];
      memcpy(b->at + at, &v, (size_t)1 << below(4));
      break;
    }
    case 4:
      n = 1 + below(b->n - at - 1), memmove(b->at + at, b->at + at + n, b->n - at - n), b->n -= n;
      break;
    case 5: /* a part again */
      n = 1 + below(b->n - at - 1);
      if (n > 64) n = 64;
      if (b->n + n <= sizeof b->at) memmove(b->at + at + n, b->at + at, b->n - at), b->n += n;
      break;
    default:
      if (!below(4)) b->n = at;
      break;
    }
  }
}

static void read_some(const TgState *s) { /* values of small tensors: their views must lie in the file */
  double v[64];
  TgTensor *t;
  for (size_t i = 0; i < 4 && (t = tg_state_at(s, i, NULL)); i++)
    if (tg_numel(t) <= 64) tg_read_f64(t, v, (size_t)tg_numel(t));
}

bool fuzz_file(uint64_t seed, bool broken) {
  static Bytes b;
  state = seed;
  Sample k = (Sample)below(SAMPLES);
  sample(k, &b);
  bool whole = !below(16);
  if (!whole) spoil(&b);
  TgContext *c =
      tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = below(4) ? "INTERP" : "INTERP:CUDA"});
  unsigned char *exact = malloc(b.n + 1);
  memcpy(exact, b.at, b.n);
  TgTensor *t = tg_borrow(c, exact, TG_U8, TG_SHAPE((int64_t)b.n), NULL, NULL), *one = NULL;
  TgState *s = NULL;
  TgValue *v = NULL;
  TgJit *j = NULL;
  bool values = !below(8);
  if (k == SAFE)
    s = tg_safe_load(t), v = s ? tg_safe_load_metadata(t, NULL) : NULL;
  else if (k == ZIP || k == ZIP_WIDE)
    s = tg_zip_extract(t);
  else if (k == TAR)
    s = tg_tar_extract(t);
  else if (k == CHECKPOINT)
    v = tg_torch_load(t), s = v ? tg_get_state(c, v, NULL) : NULL;
  else if (k == GGUF)
    v = tg_gguf_load(t), s = v ? tg_get_state(c, v, NULL) : NULL;
  else if (k == PROGRAM)
    j = tg_jit_load(t);
  else
    one = k == GZ ? tg_gunzip(t) : tg_idx(t);
  bool got = s || one || j, ok = got ? !tg_error(c) : tg_error(c) && *tg_errmsg(c);
  if (whole && !got) ok = false;
  if (broken && k == GGUF && !got) ok = false;
  if (ok && s && values) read_some(s), ok = !tg_error(c);
  if (!ok) {
    printf("files: %s with error \"%s\"\nstatic const unsigned char file[] = {",
           got ? "a result" : "no result", tg_errmsg(c));
    for (size_t i = 0; i < b.n; i++)
      printf(i % 32 ? "%d, " : "\n  %d, ", b.at[i]);
    printf("};\n");
  }
  tg_state_free(s), tg_value_free(v), tg_jit_free(j);
  tg_close(c);
  free(exact);
  return ok;
}
