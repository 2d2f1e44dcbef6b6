/* draw.h: areas, lines and letters in a picture, for the boxes of `tg run` and the curves of `tg train`. */
#ifndef TG_DRAW_H
#define TG_DRAW_H
#include "picture.h"

typedef struct Colour {
  uint8_t at[3]; /* RGB */
} Colour;

enum { LETTER_W = 6, LETTER_H = 9 }; /* of a letter with the space around it, times its size */

void draw_fill(Picture *p, int x0, int y0, int x1, int y1, Colour c); /* without x1 and y1 */
void draw_line(Picture *p, int x0, int y0, int x1, int y1, int wide, Colour c);
/* Capitals, digits and - . %, from the left upper corner; a space for others. */
void draw_text(Picture *p, int x, int y, int size, const char *text, Colour c);
#endif
