/* draw.h: draws areas, lines and letters into a picture, for the boxes of `tg run` and the curves of `tg
 * train`. */
#ifndef TG_DRAW_H
#define TG_DRAW_H
#include "picture.h"

typedef struct Colour {
  uint8_t at[3]; /* RGB */
} Colour;

enum { LETTER_W = 6, LETTER_H = 9 }; /* of a letter with the space around it, at size 1 */

void draw_fill(Picture *p, int x0, int y0, int x1, int y1, Colour c); /* x1 and y1 are excluded */
void draw_line(Picture *p, int x0, int y0, int x1, int y1, int wide, Colour c);
/* x and y are the upper left corner. Draws capitals, digits and the characters - . %; any other character is
 * left blank. */
void draw_text(Picture *p, int x, int y, int size, const char *text, Colour c);
#endif
