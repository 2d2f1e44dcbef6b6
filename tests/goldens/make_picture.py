#!/usr/bin/env python3
"""Writes tests/goldens/picture/N.jpg, a picture of six colours whose Exif block has orientation N, and N.ppm, how Pillow shows it.

    python3 tests/goldens/make_picture.py tests/goldens/picture       (PIL)
"""
import os
import sys

from PIL import Image, ImageOps

COLOURS = [(250, 20, 20), (20, 240, 30), (30, 30, 230), (240, 230, 20), (20, 220, 220), (200, 30, 210)]

os.makedirs(sys.argv[1], exist_ok=True)
picture = Image.new("RGB", (24, 16))
for i, colour in enumerate(COLOURS):
    picture.paste(colour, (i % 3 * 8, i // 3 * 8, i % 3 * 8 + 8, i // 3 * 8 + 8))
for n in range(1, 9):
    path = os.path.join(sys.argv[1], str(n))
    exif = Image.Exif()
    exif[0x010F] = "a maker"  # another entry before it
    exif[0x0112] = n
    picture.save(path + ".jpg", quality=95, subsampling=0, exif=exif)
    ImageOps.exif_transpose(Image.open(path + ".jpg")).convert("RGB").save(path + ".ppm")
