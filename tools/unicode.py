#!/usr/bin/env python3
"""Prints llm/unicode_tables.h: what WordPiece asks of characters, from Python's unicodedata.

    python3 tools/unicode.py > llm/unicode_tables.h
"""
import sys
import unicodedata

ALL = [c for c in range(sys.maxunicode + 1) if not 0xD800 <= c < 0xE000]


def ranges(of):
    out = []
    for c in ALL:
        if of(c):
            if out and out[-1][1] == c - 1:
                out[-1][1] = c
            else:
                out.append([c, c])
    return out


def rows(name, kind, comment, items):
    print(f"/* {comment} */\nstatic const {kind} {name}[] = {{")
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > 110:
            print(line)
            line = "   "
        line += " " + item + ","
    print(line.rstrip(",") + "};\n")


def category(*names):
    return lambda c: unicodedata.category(chr(c)) in names or unicodedata.category(chr(c))[0] in names


def without_marks(c):
    """The canonical decomposition without nonspacing marks; Hangul is computed."""
    s = unicodedata.normalize("NFD", chr(c))
    return [ord(k) for k in s if unicodedata.category(k) != "Mn"]


def maps():
    """Runs of characters whose lower case lies equally far away, each or every second of them."""
    low = {c: ord(chr(c).lower()) for c in ALL if len(chr(c).lower()) == 1 and chr(c).lower() != chr(c)}
    out = []
    for c, to in sorted(low.items()):
        last = out[-1] if out else None
        if last and to - c == last[2] and c - last[1] in ((1, 2) if last[0] == last[1] else (last[3],)):
            last[3], last[1] = c - last[1], c
        else:
            out.append([c, c, to - c, 1])
    return out


def based(pairs):
    """Runs of neighbours whose results have the same high half, and an end."""
    last = None
    for i, (c, to) in enumerate(pairs):
        if last != (c - 1, to >> 16):
            yield "{0x%x, %d, %d}" % (c, i, to >> 16)
        last = (c, to >> 16)
    yield "{0x3ffff, %d, 0}" % len(pairs)


print("""/* unicode_tables.h: written by tools/unicode.py. Ranges of characters, in order; the lower case of runs; what
 * is left of a character without its marks. */
#ifndef TG_LLM_UNICODE_TABLES_H
#define TG_LLM_UNICODE_TABLES_H
#include <stdint.h>

/* A character and how many come after it. */
typedef struct UnicodeRange {
  uint32_t first : 21, more : 11;
} UnicodeRange;

/* The same, of which every step-th becomes c + add. */
typedef struct UnicodeRun {
  uint32_t first : 21, more : 8, step : 3;
  int32_t add;
} UnicodeRun;

/* Characters from `from` to the next row's, as many as it has places before the next's, become high << 16 and the
 * 16 bits at its place. */
typedef struct UnicodeBases {
  uint32_t from : 18, place : 12, high : 2;
} UnicodeBases;

typedef struct UnicodeRow {
  int32_t from, to[3];
} UnicodeRow;
""")

def spans(of):
    """Ranges, in pieces that a UnicodeRange can say."""
    for first, last in ranges(of):
        for at in range(first, last + 1, 2048):
            yield "{0x%x, %d}" % (at, min(last - at, 2047))


rows("punctuation", "UnicodeRange", "P", spans(category("P")))
rows("marks", "UnicodeRange", "Mn", spans(category("Mn")))
rows("others", "UnicodeRange", "Cc, Cf, Co", spans(category("Cc", "Cf", "Co")))
rows("blanks", "UnicodeRange", "White_Space", spans(lambda c: chr(c).isspace() and not 0x1C <= c <= 0x1F))
rows("lower", "UnicodeRun", "simple lower case", ("{0x%x, %d, %d, %d}" % (first, last - first, step, add) for first, last, add, step in maps()))
one = [(c, without_marks(c)[0]) for c in ALL if not 0xAC00 <= c <= 0xD7A3 and len(without_marks(c)) == 1 and without_marks(c)[0] != c]
rows("bases", "UnicodeBases", "one character is left; past the last, no more", based(one))
rows("base_low", "uint16_t", "their low halves", ("0x%x" % (to & 0xFFFF) for c, to in one))
several = [(c, w) for c in ALL if not 0xAC00 <= c <= 0xD7A3 and len(w := without_marks(c)) > 1]
rows("several", "UnicodeRow", "some are left, at most three", ("{0x%x, {%s}}" % (c, ", ".join("0x%x" % k for k in w)) for c, w in several))
print("#endif")
