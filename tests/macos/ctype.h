/* A stub for tools/check-macos: of this header of macOS only what src uses. */
#pragma once
int isalpha(int c);
int isdigit(int c);
int isalnum(int c);
int isspace(int c);
int isxdigit(int c);
int isupper(int c);
int islower(int c);
int ispunct(int c);
int isprint(int c);
int tolower(int c);
int toupper(int c);
