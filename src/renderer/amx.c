/* amx.c: blocks of products on the tiles of AMX, in GNU C. In: a STORE of a WMMA whose operands are in memory
 * (matrix.h). Out: a call of a function that is written in front of the kernel. Results stay in tiles 0 .. 3.
 * Tiles of a alternate between 4 and 5, tiles of b between 6 and 7.
 *
 * The instructions are inline assembly, because a compiler that is given tiles by its builtins allocates them
 * itself, and each compiler does so in its own way. A kernel configures its tiles once at the start and
 * releases them at the end. */
#include "renderer/cstyle_private.h"
#include "uop/matrix.h"

enum { MOST_TILES = 4, TILES_OF_A = 4, TILES_OF_B = 6 }; /* tiles of results; as many tiles hold operands */

static const char begin[] =
    "INL void tiles_begin(void) {\n  _Alignas(64) u8 t[64] = {1};\n"
    "  for (int i = 0; i < 8; i++) t[16 + 2 * i] = 64, t[48 + i] = 16;\n"
    "  __asm__ volatile(\"ldtilecfg %0\" : : \"m\"(*(const u8 (*)[64])t));\n}\n"
    "INL void tiles_end(void) { __asm__ volatile(\"tilerelease\"); }\n"
    "#define TILE_ZERO(T) __asm__ volatile(\"tilezero %%tmm\" #T : : )\n"
    "#define TILE_LOAD(T, P, PITCH) __asm__ volatile(\"tileloadd (%0,%1,1), %%tmm\" #T : : \"r\"(P), "
    "\"r\"((i64)(PITCH)) : \"memory\")\n"
    "#define TILE_STORE(T, P, PITCH) __asm__ volatile(\"tilestored %%tmm\" #T \", (%0,%1,1)\" : : \"r\"(P), "
    "\"r\"((i64)(PITCH)) : \"memory\")\n"
    "#define TILE_ADD(HOW, T, A, B) __asm__ volatile(#HOW \" %%tmm\" #B \", %%tmm\" #A \", %%tmm\" #T : : )";

static const char *instruction(const MatrixShape *s) {
  bool a = s->operand[MATRIX_A].dtype == DT_I8, b = s->operand[MATRIX_B].dtype == DT_I8;
  if (s->operand[MATRIX_A].dtype == DT_BF16) return "tdpbf16ps";
  return a ? (b ? "tdpbssd" : "tdpbsud") : b ? "tdpbusd" : "tdpbuud";
}

static int tile_of(MatrixRole role, int i) { return (role == MATRIX_A ? TILES_OF_A : TILES_OF_B) + i % 2; }

/* One step: multiplies rows of tiles. A tile of a is loaded once for its whole row, a tile of b once for all
 * rows. */
static void step(Str *out, const MatrixShape *s, int rows, int columns) {
  for (int i = 0; i < rows; i++) {
    cs_fmt(out, "    TILE_LOAD(%d, a + %d * pitch, pitch * sizeof *a);\n", tile_of(MATRIX_A, i), s->m * i);
    for (int j = 0; j < columns; j++) {
      if (i == 0) cs_fmt(out, "    TILE_LOAD(%d, b + %d * panel, 64);\n", tile_of(MATRIX_B, j), j);
      cs_fmt(out, "    TILE_ADD(%s, %d, %d, %d);\n", instruction(s), i * columns + j, tile_of(MATRIX_A, i),
             tile_of(MATRIX_B, j));
    }
  }
}

static void function(Str *out, const char *name, const MatrixShape *s, int rows, int columns,
                     const char *type) {
  const char *a = cs_stored(s->operand[MATRIX_A].dtype);
  const char *b = cs_stored(s->operand[MATRIX_B].dtype);
  cs_fmt(out, "INL void %s(%s *to, const %s *a, i64 pitch, const %s *b, i64 panel, i64 steps) {\n", name,
         type, a, b);
  for (int t = 0; t < rows * columns; t++)
    cs_fmt(out, "  TILE_ZERO(%d);\n", t);
  cs_fmt(out, "  for (i64 k = 0; k < steps; k += %d, a += %d, b += %d) {\n", s->k, s->k, s->k * s->n);
  step(out, s, rows, columns);
  cs_fmt(out, "  }\n");
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++)
      cs_fmt(out, "  TILE_STORE(%d, to + %d, %d);\n", i * columns + j, i * s->m * columns * s->n + j * s->n,
             4 * columns * s->n);
  cs_fmt(out, "}");
}

static const char *place(C *c, const UOp *index) {
  return cs_text(c, "%s + %s", cs_ref(c, uop_base(index->src[0])), cs_ref(c, index->src[1]));
}

void cs_block_call(C *c, const char *name, const UOp *store) {
  const UOp *u = store->src[1];
  cs_put(c, "%s(%s, %s, %s, ", name, place(c, uop_base(store->src[0])), place(c, u->src[0]),
         cs_ref(c, u->src[5]));
  cs_put(c, "%s, %s, %s);\n", place(c, u->src[1]), cs_ref(c, u->src[6]), cs_ref(c, u->src[4]));
}

void cs_tiles(C *c, const UOp *store) {
  const UOp *u = store->src[1], *to = uop_base(store->src[0]);
  const MatrixShape *s = &matrix_shapes[u->arg.i];
  int rows = (int)u->src[2]->arg.v.i / s->m, columns = (int)u->src[3]->arg.v.i / s->n;
  bool fits = to->op == OPS_INDEX && !to->arg.i && rows * columns <= MOST_TILES;
  if (!fits || (rows > 2 && columns > 1) || (columns > 2 && rows > 1)) {
    cs_fail(c, store, "no block of tiles");
    return;
  }
  const char *type = cs_stored((DType)u->dtype), *none[26] = {NULL};
  const char *name = cs_text(c, "tiles_%s_%dx%d_%s", s->name, rows, columns, type);
  Str text;
  str_init(&text, c->body.mem);
  function(&text, name, s, rows, columns, type);
  cs_helper(c, "tiles", begin, none, 0);
  cs_helper(c, name, str_text(&text), none, 0);
  if (text.oom) c->body.oom = true;
  str_free(&text);
  cs_block_call(c, name, store);
}
