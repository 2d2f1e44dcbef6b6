/* digits.c: draws digits, for a demo without data. A digit is a few strokes on a unit square. Each picture
 * rotates, slants, scales and moves them, shifts their points, picks a pen width, and adds noise. */
#include "cli.h"
#include <math.h>

typedef struct Pt {
  float x, y;
} Pt;

enum { MAX_POINTS = 20, MAX_STROKES = 3 };

typedef struct Glyph {
  int nstrokes, npoints[MAX_STROKES];
  Pt p[MAX_STROKES][MAX_POINTS];
} Glyph;

/* Some digits have two shapes, as people write them. x is rightwards, y downwards, both 0 .. 1. */
static const struct {
  int digit;
  Glyph g;
} font[] = {
    {0,
     {1,
      {13},
      {{{.5f, .05f},
        {.72f, .12f},
        {.85f, .3f},
        {.88f, .5f},
        {.85f, .7f},
        {.72f, .88f},
        {.5f, .95f},
        {.28f, .88f},
        {.15f, .7f},
        {.12f, .5f},
        {.15f, .3f},
        {.28f, .12f},
        {.5f, .05f}}}}},
    {1, {1, {3}, {{{.3f, .25f}, {.52f, .05f}, {.52f, .95f}}}}},
    {1, {1, {2}, {{{.55f, .05f}, {.45f, .95f}}}}},
    {2,
     {1,
      {9},
      {{{.15f, .28f},
        {.25f, .1f},
        {.5f, .04f},
        {.75f, .12f},
        {.82f, .3f},
        {.7f, .5f},
        {.4f, .72f},
        {.12f, .95f},
        {.88f, .95f}}}}},
    {3,
     {1,
      {12},
      {{{.18f, .15f},
        {.38f, .05f},
        {.65f, .07f},
        {.8f, .22f},
        {.72f, .4f},
        {.45f, .48f},
        {.72f, .54f},
        {.85f, .72f},
        {.72f, .9f},
        {.45f, .96f},
        {.25f, .92f},
        {.12f, .8f}}}}},
    {4, {2, {3, 2}, {{{.62f, .05f}, {.1f, .65f}, {.9f, .65f}}, {{.66f, .3f}, {.64f, .96f}}}}},
    {4, {2, {3, 2}, {{{.2f, .08f}, {.15f, .52f}, {.85f, .5f}}, {{.75f, .05f}, {.68f, .96f}}}}},
    {5,
     {1,
      {10},
      {{{.82f, .06f},
        {.28f, .06f},
        {.2f, .45f},
        {.45f, .38f},
        {.7f, .43f},
        {.84f, .62f},
        {.78f, .82f},
        {.58f, .95f},
        {.32f, .94f},
        {.13f, .84f}}}}},
    {6,
     {1,
      {12},
      {{{.75f, .06f},
        {.48f, .15f},
        {.25f, .38f},
        {.15f, .65f},
        {.25f, .88f},
        {.5f, .96f},
        {.75f, .88f},
        {.83f, .7f},
        {.72f, .53f},
        {.5f, .48f},
        {.28f, .55f},
        {.17f, .68f}}}}},
    {7, {1, {3}, {{{.1f, .08f}, {.88f, .08f}, {.4f, .96f}}}}},
    {7, {2, {3, 2}, {{{.1f, .1f}, {.88f, .06f}, {.42f, .96f}}, {{.3f, .5f}, {.8f, .48f}}}}},
    {8,
     {1,
      {17},
      {{{.5f, .48f},
        {.26f, .38f},
        {.2f, .22f},
        {.32f, .08f},
        {.5f, .04f},
        {.68f, .08f},
        {.8f, .22f},
        {.74f, .38f},
        {.5f, .48f},
        {.24f, .6f},
        {.14f, .76f},
        {.26f, .9f},
        {.5f, .96f},
        {.74f, .9f},
        {.86f, .76f},
        {.76f, .6f},
        {.5f, .48f}}}}},
    {9,
     {1,
      {12},
      {{{.82f, .3f},
        {.72f, .48f},
        {.5f, .54f},
        {.27f, .48f},
        {.17f, .3f},
        {.27f, .12f},
        {.5f, .05f},
        {.73f, .11f},
        {.83f, .3f},
        {.8f, .58f},
        {.65f, .82f},
        {.4f, .96f}}}}},
};

enum { NFONT = sizeof font / sizeof *font };

static uint64_t next(uint64_t *s) { /* splitmix64 */
  uint64_t z = *s += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static float between(uint64_t *s, float lo, float hi) {
  return lo + (hi - lo) * ((float)(next(s) >> 40) / 16777216.0f);
}

/* Returns the squared distance from (x, y) to the segment from a to b. */
static float distance2(float x, float y, Pt a, Pt b) {
  float dx = b.x - a.x, dy = b.y - a.y, n = dx * dx + dy * dy;
  float t = n > 0 ? ((x - a.x) * dx + (y - a.y) * dy) / n : 0;
  t = t < 0 ? 0 : t > 1 ? 1 : t;
  float ex = x - a.x - t * dx, ey = y - a.y - t * dy;
  return ex * ex + ey * ey;
}

static void draw_one(uint64_t *s, int digit, uint8_t *out) {
  int pick[NFONT], n = 0;
  for (int i = 0; i < NFONT; i++)
    if (font[i].digit == digit) pick[n++] = i;
  Glyph g = font[pick[next(s) % (uint64_t)n]].g;
  float turn = between(s, -0.26f, 0.26f), slant = between(s, -0.3f, 0.3f), pen = between(s, 0.85f, 1.6f);
  float w = between(s, 12, 18), h = between(s, 17, 21), cx = 14 + between(s, -2, 2),
        cy = 14 + between(s, -2, 2);
  float co = cosf(turn), si = sinf(turn), ink = between(s, 200, 255), noise = between(s, 0, 24);
  for (int k = 0; k < g.nstrokes; k++)
    for (int i = 0; i < g.npoints[k]; i++) {
      float y = (g.p[k][i].y - 0.5f) * h + between(s, -0.6f, 0.6f),
            x = (g.p[k][i].x - 0.5f) * w - slant * y + between(s, -0.6f, 0.6f);
      g.p[k][i] = (Pt){cx + co * x - si * y, cy + si * x + co * y};
    }
  for (int r = 0; r < 28; r++)
    for (int c = 0; c < 28; c++) {
      float best = 1e9f;
      for (int k = 0; k < g.nstrokes; k++)
        for (int i = 0; i + 1 < g.npoints[k]; i++) {
          float d = distance2((float)c + 0.5f, (float)r + 0.5f, g.p[k][i], g.p[k][i + 1]);
          if (d < best) best = d;
        }
      float edge = pen + 0.5f - sqrtf(best); /* the edge is soft: one pixel wide */
      float v = (edge < 0 ? 0 : edge > 1 ? 1 : edge) * ink + between(s, -noise, noise);
      out[28 * r + c] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
    }
}

void digits_draw(uint64_t seed, int n, uint8_t *pixels, uint8_t *labels) {
  uint64_t s = seed * 0x2545f4914f6cdd1du + 1;
  for (int i = 0; i < n; i++) {
    labels[i] = (uint8_t)(next(&s) % 10);
    draw_one(&s, labels[i], pixels + 784 * (size_t)i);
  }
}
