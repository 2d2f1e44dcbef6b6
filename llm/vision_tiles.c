/* vision_tiles.c: the views of a large picture: tiles of it, and the picture as a whole. In: the size of a
 * picture, its bytes, the rule of its projector's row. Out: how many views there are, the text before each,
 * and their pixels. Each view is a square that the tower reads, as if it were a picture of its own. A size
 * alone decides how a picture is cut, as in the models' own processors. */
#include "vision_private.h"
#include <math.h>
#include <stdio.h>

/* A grid without a length in the file: Idefics 3 and SmolVLM have four tiles on the longest edge. Pan and
 * scan: crops are at least 256 pixels on a side, and a picture is cut if it is 1.2 times as long as wide. */
enum { GRID_TILES = 4, GRID_SIDE = 16, CROP_LEAST = 256 };

static const double crop_ratio = 1.2;

/* ---- the rules */
bool vision_tiles_read(TgVision *v, int64_t tiles) {
  const char *key = "clip.vision.preproc_image_size";
  VisionNumbers *k = &v->k;
  bool grid = v->kind->tiling == TILES_GRID;
  if (tiles < -1 || tiles > VISION_TILES)
    return llm_fail(v->ctx, TG_ERR_VALUE, "vision_open: tiles is %lld, of -1 to %d", (long long)tiles,
                    VISION_TILES);
  if (tiles > 0 && v->kind->tiling == TILES_NONE)
    return llm_fail(v->ctx, TG_ERR_VALUE, "vision_open: pictures have no tiles with %s (%s)", v->kind->name,
                    v->kind->models);
  if (grid && !llm_kv_int(v->ctx, v->gguf, key, tiles > 0 ? GRID_TILES * k->image : 0, &k->edge))
    return false;
  if (grid && tiles > 0 && !k->edge) k->edge = GRID_TILES * k->image;
  if (k->edge < 0 || k->edge > VISION_EDGE || k->edge > GRID_SIDE * k->image)
    return llm_fail(v->ctx, TG_ERR_VALUE, "vision: %s is %lld, of at most %d, and %d times image_size, %lld",
                    key, (long long)k->edge, VISION_EDGE, GRID_SIDE, (long long)k->image);
  if (tiles < 0) k->edge = 0;
  k->tiles = tiles > 0 ? tiles : k->edge ? VISION_TILES : 0;
  return true;
}

static int64_t up_to(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

/* The size of a picture whose longest edge becomes `edge`; the other edge becomes even. */
static void edge_sizes(VisionGrid *g, int64_t height, int64_t width, int64_t edge) {
  double ratio = (double)width / (double)height;
  bool wide = width >= height;
  int64_t other = wide ? (int64_t)((double)edge / ratio) : (int64_t)((double)edge * ratio);
  other += other % 2;
  if (other < 1) other = 1;
  g->before_h = wide ? other : edge;
  g->before_w = wide ? edge : other;
}

static VisionGrid grid_of_edge(int64_t image, int64_t height, int64_t width, int64_t edge) {
  VisionGrid g = {.rows = 0};
  edge_sizes(&g, height, width, edge);
  double ratio = (double)g.before_w / (double)g.before_h;
  if (g.before_w >= g.before_h) {
    g.width = up_to(g.before_w, image);
    g.height = up_to((int64_t)((double)g.width / ratio), image);
  } else {
    g.height = up_to(g.before_h, image);
    g.width = up_to((int64_t)((double)g.height * ratio), image);
  }
  if (g.height < image) g.height = image;
  if (g.width < image) g.width = image;
  bool cut = g.height > image || g.width > image;
  g.rows = cut ? g.height / image : 0;
  g.cols = cut ? g.width / image : 0;
  return g;
}

/* If there are more tiles than are wanted, the longest edge becomes shorter by a tile. */
static VisionGrid grid(const VisionNumbers *k, int64_t height, int64_t width) {
  VisionGrid g = {.rows = 0};
  for (int64_t edge = k->edge; edge > 0; edge -= k->image) {
    g = grid_of_edge(k->image, height, width, edge);
    if (g.rows * g.cols <= k->tiles) return g;
  }
  return (VisionGrid){.rows = 0};
}

/* Cuts along the longer side. */
static VisionGrid crops(const VisionNumbers *k, int64_t height, int64_t width) {
  int64_t longer = width >= height ? width : height, shorter = width >= height ? height : width;
  double ratio = (double)longer / (double)shorter;
  if (k->tiles < 2 || ratio < crop_ratio) return (VisionGrid){.rows = 0};
  int64_t n = (int64_t)floor(ratio + 0.5);
  if (n > longer / CROP_LEAST) n = longer / CROP_LEAST;
  if (n < 2) n = 2;
  if (n > k->tiles) n = k->tiles;
  int64_t each = (longer + n - 1) / n;
  if (each < CROP_LEAST || shorter < CROP_LEAST) return (VisionGrid){.rows = 0};
  return width >= height ? (VisionGrid){.rows = 1, .cols = n} : (VisionGrid){.rows = n, .cols = 1};
}

VisionGrid vision_grid(const TgVision *v, int64_t height, int64_t width) {
  if (v->kind->tiling == TILES_GRID && v->k.tiles) return grid(&v->k, height, width);
  if (v->kind->tiling == TILES_CROPS && v->k.tiles) return crops(&v->k, height, width);
  return (VisionGrid){.rows = 0};
}

int64_t vision_views(VisionGrid g) { return g.rows * g.cols + 1; }

/* ---- texts */
/* Appends a text; "{row}" and "{col}" become numbers. */
static void text_put(TgVision *v, const char *text, int64_t row, int64_t col) {
  size_t at = strlen(v->text);
  while (*text && at + 8 < sizeof v->text) {
    bool is_row = !strncmp(text, "{row}", 5), is_col = !strncmp(text, "{col}", 5);
    if (is_row || is_col) {
      at += (size_t)snprintf(v->text + at, sizeof v->text - at, "%d", (int)(is_row ? row : col) + 1);
      text += 5;
    } else {
      v->text[at++] = *text++;
      v->text[at] = 0;
    }
  }
}

static void tile_text(TgVision *v, VisionGrid g, int64_t tile) {
  const VisionTexts *t = &v->kind->texts;
  int64_t row = tile / g.cols, col = tile % g.cols;
  if (tile && !col) text_put(v, t->row, row, col);
  text_put(v, !tile && t->first ? t->first : t->tile, row, col);
}

/* A picture's views are its tiles, row by row, and the whole picture before or after them. */
static int64_t whole_view(const TgVision *v, VisionGrid g) {
  return v->kind->texts.whole_last ? g.rows * g.cols : 0;
}

const char *tg_vision_text(TgVision *v, int64_t height, int64_t width, int64_t view) {
  int64_t views = tg_vision_views(v, height, width);
  if (!views) return NULL;
  VisionGrid g = vision_grid(v, height, width);
  if (view < 0 || view > views) {
    llm_fail(v->ctx, TG_ERR_VALUE, "vision_text: view %lld, of %lld", (long long)view, (long long)views);
    return NULL;
  }
  if (view == views) return v->kind->end;
  if (views == 1) return v->kind->begin;
  bool last = v->kind->texts.whole_last;
  v->text[0] = 0;
  if (view != whole_view(v, g))
    tile_text(v, g, last ? view : view - 1);
  else {
    if (last) text_put(v, v->kind->texts.row, 0, 0);
    text_put(v, v->kind->texts.whole, 0, 0);
  }
  return v->text;
}

/* ---- pixels */
/* Copies the rectangle at (top, left) of a picture of this width. */
static void cut(const uint8_t *rgb, int64_t width, int64_t top, int64_t left, int64_t rows, int64_t cols,
                uint8_t *out) {
  for (int64_t y = 0; y < rows; y++)
    memcpy(out + y * cols * 3, rgb + ((top + y) * width + left) * 3, (size_t)(cols * 3));
}

/* Returns the picture that the grid is laid on. It is kept, because all tiles of a picture are read in turn.
 * Returns NULL on an error. */
static const uint8_t *sheet_of(TgVision *v, const uint8_t *rgb, int64_t height, int64_t width, VisionGrid g,
                               const PictureHash *hash) {
  if (v->sheet && !memcmp(&v->sheet_of, hash, sizeof *hash)) return v->sheet;
  PictureFilter f = v->kind->filter;
  tg_free(v->ctx, v->sheet);
  v->sheet = NULL;
  uint8_t *before = tg_alloc(v->ctx, (size_t)(g.before_h * g.before_w * 3));
  uint8_t *sheet = before ? tg_alloc(v->ctx, (size_t)(g.height * g.width * 3)) : NULL;
  bool ok = sheet && picture_resized(v->ctx, f, rgb, height, width, g.before_h, g.before_w, before) &&
            picture_resized(v->ctx, f, before, g.before_h, g.before_w, g.height, g.width, sheet);
  tg_free(v->ctx, before);
  if (!ok) tg_free(v->ctx, sheet);
  if (!ok) return NULL;
  v->sheet = sheet;
  v->sheet_of = *hash;
  return sheet;
}

static bool grid_view(TgVision *v, const uint8_t *sheet, VisionGrid g, int64_t view, uint8_t *out) {
  int64_t image = v->k.image, tile = v->kind->texts.whole_last ? view : view - 1;
  if (view == whole_view(v, g))
    return picture_resized(v->ctx, v->kind->filter, sheet, g.height, g.width, image, image, out);
  cut(sheet, g.width, tile / g.cols * image, tile % g.cols * image, image, image, out);
  return true;
}

/* The last crop of a row may be smaller than the others. */
static bool crop_view(TgVision *v, const uint8_t *rgb, int64_t height, int64_t width, VisionGrid g,
                      int64_t tile, uint8_t *out) {
  int64_t tall = (height + g.rows - 1) / g.rows, wide = (width + g.cols - 1) / g.cols;
  int64_t top = tile / g.cols * tall, left = tile % g.cols * wide, image = v->k.image;
  if (tall > height - top) tall = height - top;
  if (wide > width - left) wide = width - left;
  uint8_t *part = tg_alloc(v->ctx, (size_t)(tall * wide * 3));
  if (part) cut(rgb, width, top, left, tall, wide, part);
  bool ok = part && picture_resized(v->ctx, v->kind->filter, part, tall, wide, image, image, out);
  tg_free(v->ctx, part);
  return ok;
}

bool vision_view(TgVision *v, const uint8_t *rgb, int64_t height, int64_t width, const PictureHash *hash,
                 int64_t view, uint8_t *out) {
  VisionGrid g = vision_grid(v, height, width);
  if (g.height) {
    const uint8_t *sheet = sheet_of(v, rgb, height, width, g, hash);
    return sheet && grid_view(v, sheet, g, view, out);
  }
  if (view == whole_view(v, g)) return picture_fit(v, rgb, height, width, out);
  return crop_view(v, rgb, height, width, g, v->kind->texts.whole_last ? view : view - 1, out);
}
