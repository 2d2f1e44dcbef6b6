/* draw.c: draws areas, lines and letters into a picture of bytes. Whatever is outside the picture is not
 * drawn. Letters are 5 x 7 pixels: one byte a row, with the lowest bit on the right. */
#include "draw.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const unsigned char letters[][8] = {
    {'A', 14, 17, 17, 31, 17, 17, 17}, {'B', 30, 17, 17, 30, 17, 17, 30}, {'C', 14, 17, 16, 16, 16, 17, 14},
    {'D', 28, 18, 17, 17, 17, 18, 28}, {'E', 31, 16, 16, 30, 16, 16, 31}, {'F', 31, 16, 16, 30, 16, 16, 16},
    {'G', 14, 17, 16, 23, 17, 17, 15}, {'H', 17, 17, 17, 31, 17, 17, 17}, {'I', 14, 4, 4, 4, 4, 4, 14},
    {'J', 7, 2, 2, 2, 2, 18, 12},      {'K', 17, 18, 20, 24, 20, 18, 17}, {'L', 16, 16, 16, 16, 16, 16, 31},
    {'M', 17, 27, 21, 21, 17, 17, 17}, {'N', 17, 25, 21, 19, 17, 17, 17}, {'O', 14, 17, 17, 17, 17, 17, 14},
    {'P', 30, 17, 17, 30, 16, 16, 16}, {'Q', 14, 17, 17, 17, 21, 18, 13}, {'R', 30, 17, 17, 30, 20, 18, 17},
    {'S', 15, 16, 16, 14, 1, 1, 30},   {'T', 31, 4, 4, 4, 4, 4, 4},       {'U', 17, 17, 17, 17, 17, 17, 14},
    {'V', 17, 17, 17, 17, 17, 10, 4},  {'W', 17, 17, 17, 21, 21, 21, 10}, {'X', 17, 17, 10, 4, 10, 17, 17},
    {'Y', 17, 17, 10, 4, 4, 4, 4},     {'Z', 31, 1, 2, 4, 8, 16, 31},     {'0', 14, 17, 19, 21, 25, 17, 14},
    {'1', 4, 12, 4, 4, 4, 4, 14},      {'2', 14, 17, 1, 6, 8, 16, 31},    {'3', 31, 2, 4, 2, 1, 17, 14},
    {'4', 2, 6, 10, 18, 31, 2, 2},     {'5', 31, 16, 30, 1, 1, 17, 14},   {'6', 6, 8, 16, 30, 17, 17, 14},
    {'7', 31, 1, 2, 4, 8, 8, 8},       {'8', 14, 17, 17, 14, 17, 17, 14}, {'9', 14, 17, 17, 15, 1, 2, 12},
    {'-', 0, 0, 0, 14, 0, 0, 0},       {'.', 0, 0, 0, 0, 0, 12, 12},      {'%', 24, 25, 2, 4, 8, 19, 3}};

void draw_fill(Picture *p, int x0, int y0, int x1, int y1, Colour c) {
  for (int y = y0 < 0 ? 0 : y0; y < y1 && y < p->height; y++)
    for (int x = x0 < 0 ? 0 : x0; x < x1 && x < p->width; x++)
      memcpy(p->rgb + 3 * ((size_t)y * (size_t)p->width + (size_t)x), c.at, 3);
}

static void letter(Picture *p, int x, int y, int size, char sign, Colour c) {
  for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
    for (int k = 0; letters[i][0] == toupper((unsigned char)sign) && k < 35; k++)
      if (letters[i][1 + k / 5] >> (4 - k % 5) & 1)
        draw_fill(p, x + k % 5 * size, y + k / 5 * size, x + (k % 5 + 1) * size, y + (k / 5 + 1) * size, c);
}

void draw_text(Picture *p, int x, int y, int size, const char *text, Colour c) {
  for (int i = 0; text[i]; i++)
    letter(p, x + i * LETTER_W * size, y, size, text[i], c);
}

void draw_line(Picture *p, int x0, int y0, int x1, int y1, int wide, Colour c) {
  int n = abs(x1 - x0) > abs(y1 - y0) ? abs(x1 - x0) : abs(y1 - y0);
  for (int i = 0; i <= n; i++) {
    int x = n ? x0 + (int)((int64_t)(x1 - x0) * i / n) : x0,
        y = n ? y0 + (int)((int64_t)(y1 - y0) * i / n) : y0;
    draw_fill(p, x, y, x + wide, y + wide, c);
  }
}
