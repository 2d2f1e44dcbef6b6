/* board.h: what a program on the bare board has: a console and an end, both by semihosting. */
#ifndef BOARD_H
#define BOARD_H
void board_text(const char *text);
void board_number(const char *before, long v, const char *after);
void board_end(int status); /* 0: all is well */
#endif
