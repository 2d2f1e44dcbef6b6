/* hash.c: Keccak (FIPS 202) along the last axis, and a tree of such hashes over a whole tensor. In: bytes.
 * Out: digests. The 25 lanes of a state are the first two axes, (y, x, messages), so every message of a
 * batch uses the same 24 kernels for each block. */
#include "tensor/front.h"
#include <stdio.h>

enum { LANES = 25, ROUNDS = 24, STATE_BYTES = 200, MAX_BLOCKS = 512 };

typedef struct Sponge {
  int64_t rate, digest; /* bytes */
  uint8_t domain;
} Sponge;

static bool sponge_named(const char *name, Sponge *s) {
  static const struct {
    const char *name;
    Sponge s;
  } known[] = {{"sha3_224", {144, 28, 6}}, {"sha3_256", {136, 32, 6}},   {"sha3_384", {104, 48, 6}},
               {"sha3_512", {72, 64, 6}},  {"shake_128", {168, 16, 31}}, {"shake_256", {136, 32, 31}}};

  for (size_t i = 0; name && i < TG_COUNT(known); i++)
    if (!strcmp(known[i].name, name)) {
      *s = known[i].s;
      return true;
    }
  int rate, domain, n = 0;
  if (!name || sscanf(name, "%d,%d%n", &rate, &domain, &n) != 2 || name[n]) return false;
  *s = (Sponge){rate, (STATE_BYTES - rate) / 2, (uint8_t)domain};
  return rate > 0 && rate < STATE_BYTES && rate % 8 == 0 && domain > 0 && domain < 128;
}

/* ---- the constants of a round, by their definitions in the standard */
/* Bit j of a round's constant is at position 2^j - 1. The bits come from a shift register of 8 bits with
 * the polynomial x^8 + x^6 + x^5 + x^4 + 1. */
static void round_constants(uint64_t out[ROUNDS][LANES]) {
  unsigned lfsr = 1;
  memset(out, 0, sizeof(uint64_t) * ROUNDS * LANES);
  for (int r = 0; r < ROUNDS; r++)
    for (int j = 0; j < 7; j++) {
      if (lfsr & 1) out[r][0] ^= UINT64_C(1) << ((1 << j) - 1);
      lfsr = lfsr & 0x80 ? (lfsr << 1 ^ 0x71) & 0xff : lfsr << 1;
    }
}

/* The distance by which lane (y, x) rotates: 0 for (0, 0), then triangular numbers along a walk through
 * all other lanes. */
static void rotations(uint64_t out[LANES]) {
  int x = 1, y = 0;
  out[0] = 0;
  for (int t = 0; t < LANES - 1; t++) {
    out[5 * y + x] = (uint64_t)((t + 1) * (t + 2) / 2 % 64);
    int next = (2 * x + 3 * y) % 5;
    x = y;
    y = next;
  }
}

/* The lane that moves to (y, x). */
static void sources(int32_t out[LANES]) {
  for (int y = 0; y < 5; y++)
    for (int x = 0; x < 5; x++)
      out[5 * y + x] = 5 * x + (x + 3 * y) % 5;
}

typedef struct Constants {
  TgTensor *round, *left, *right, *source; /* (24, 5, 5, 1), (5, 5, 1) twice, (25) */
} Constants;

static Constants constants_new(TgContext *ctx) {
  uint64_t round[ROUNDS][LANES], left[LANES], right[LANES];
  int32_t source[LANES];
  round_constants(round), rotations(left), sources(source);
  for (int i = 0; i < LANES; i++)
    right[i] = (64 - left[i]) % 64;
  return (Constants){
      tg_from(ctx, round, TG_U64, TG_SHAPE(ROUNDS, 5, 5, 1)), tg_from(ctx, left, TG_U64, TG_SHAPE(5, 5, 1)),
      tg_from(ctx, right, TG_U64, TG_SHAPE(5, 5, 1)), tg_from(ctx, source, TG_I32, TG_SHAPE(LANES))};
}

/* ---- the permutation */
static TgTensor *along_x(TgTensor *a, int64_t by) { return tg_roll(a, 1, &by, (const int64_t[]){1}); }

/* One round of the permutation. a: (5, 5, m). */
static TgTensor *one_round(TgTensor *a, const Constants *k, int r) {
  int64_t m = tg_dim(a, 2);
  TgTensor *c = tg_slice(a, 0, 0, 1);
  for (int y = 1; y < 5; y++)
    c = tg_bitxor(c, tg_slice(a, 0, y, y + 1));
  TgTensor *next = along_x(c, -1), *turned = tg_bitor(tg_shl_scalar(next, 1), tg_shr_scalar(next, 63));
  a = tg_bitxor(a, tg_bitxor(along_x(c, 1), turned));
  a = tg_bitor(tg_shl(a, k->left), tg_shr(a, k->right));
  a = tg_reshape(tg_take(tg_reshape(a, TG_SHAPE(LANES, m)), k->source), TG_SHAPE(5, 5, m));
  a = tg_bitxor(a, tg_bitand(tg_bitnot(along_x(a, -1)), along_x(a, -2)));
  return tg_contiguous(tg_bitxor(a, tg_select(k->round, 0, r)));
}

/* Returns the message and its padding as blocks: u64 (blocks, 5, 5, m). x: u8 (m, n). */
static TgTensor *blocks_of(TgTensor *x, const Sponge *s, int64_t blocks) {
  int64_t m = tg_dim(x, 0), n = tg_dim(x, 1), rest = blocks * s->rate - n;
  uint8_t tail[STATE_BYTES] = {s->domain};
  tail[rest - 1] |= 0x80;
  TgTensor *end = tg_expand(tg_from(x->ctx, tail, TG_U8, TG_SHAPE(1, rest)), TG_SHAPE(m, rest));
  TgTensor *all = n ? tg_cat((TgTensor *[]){x, end}, 2, 1) : end;
  TgTensor *lanes = tg_bitcast(tg_contiguous(all), TG_U64); /* (m, blocks * rate / 8) */
  lanes = tg_permute(tg_reshape(lanes, TG_SHAPE(m, blocks, s->rate / 8)), 3, (const int64_t[]){1, 2, 0});
  lanes = tg_pad(lanes, (const int64_t[]){0, 0, 0}, (const int64_t[]){0, LANES - s->rate / 8, 0});
  return tg_contiguous(tg_reshape(lanes, TG_SHAPE(blocks, 5, 5, m)));
}

/* u8 (m, n) -> (m, s->digest). */
static TgTensor *digest(TgTensor *x, const Sponge *s) {
  if (!x) return NULL;
  int64_t m = tg_dim(x, 0), blocks = tg_dim(x, 1) / s->rate + 1;
  Constants k = constants_new(x->ctx);
  TgTensor *all = blocks_of(x, s, blocks), *a = tg_select(all, 0, 0);
  for (int64_t b = 0; b < blocks && a; b++) {
    if (b) a = tg_bitxor(a, tg_select(all, 0, b));
    for (int r = 0; r < ROUNDS; r++)
      a = one_round(a, &k, r);
  }
  TgTensor *bytes = tg_bitcast(tg_contiguous(tg_transpose(tg_reshape(a, TG_SHAPE(LANES, m)), 0, 1)), TG_U8);
  return tg_slice(bytes, 1, 0, s->digest);
}

/* Returns the bytes of the last axis as rows. */
static TgTensor *byte_rows(TgTensor *x) {
  if (tg_dtype(x) != TG_U8) x = tg_bitcast(tg_contiguous(x), TG_U8);
  return x ? tg_reshape(x, TG_SHAPE(tg_numel(x) / TG_MAX(tg_dim(x, -1), 1), tg_dim(x, -1))) : NULL;
}

TgTensor *tg_keccak(TgTensor *x, const char *name) {
  Sponge s;
  if (!x) return NULL;
  TG_NUMBERS(x, "keccak");
  TG_REQUIRE(x->ctx, sponge_named(name, &s), TG_ERR_VALUE, "keccak: there is no '%s'", name ? name : "");
  TG_REQUIRE(x->ctx, rank(x) >= 1 && tg_dim(x, -1) > 0, TG_ERR_SHAPE,
             "keccak: %s has no bytes along its last axis", SHAPE_OF(x));
  TG_REQUIRE(x->ctx, tg_dim(x, -1) <= MAX_BLOCKS * s.rate, TG_ERR_LIMIT,
             "keccak: %lld bytes and more in a message", (long long)tg_dim(x, -1));
  int64_t dims[TG_MAX_RANK];
  memcpy(dims, tg_shape(x), sizeof *dims * (size_t)rank(x));
  dims[rank(x) - 1] = s.digest;
  int n = rank(x);
  return tg_reshape(digest(byte_rows(x), &s), n, dims);
}

/* Hashes pieces of a mebibyte. The 256 blocks of 4 KiB of a piece give 16 bytes each, which are hashed
 * again to 16 bytes. The digests of the pieces are the data of the next level, until one is left. */
TgTensor *tg_hash(TgTensor *x) {
  enum { PIECE = 1 << 20, BLOCK = 4096, DIGEST = 16 };

  static const Sponge shake = {168, DIGEST, 31};

  if (!x) return NULL;
  TG_NUMBERS(x, "hash");
  TgTensor *data = byte_rows(tg_reshape(x, TG_SHAPE(-1)));
  if (!nelem(x)) data = tg_zeros(x->ctx, TG_SHAPE(1, 0), .dtype = TG_U8);
  for (;;) {
    int64_t n = tg_numel(data), pieces = TG_MAX((n + PIECE - 1) / PIECE, 1);
    data = tg_pad(tg_reshape(data, TG_SHAPE(n)), (const int64_t[]){0}, (const int64_t[]){pieces * PIECE - n});
    data = digest(tg_reshape(data, TG_SHAPE(pieces * (PIECE / BLOCK), BLOCK)), &shake);
    data = digest(tg_reshape(data, TG_SHAPE(pieces, BLOCK)), &shake);
    if (!data || pieces == 1) return data ? tg_reshape(data, TG_SHAPE(DIGEST)) : NULL;
  }
}
