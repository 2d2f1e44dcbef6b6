"""pictures.py: pictures for language models. In: files, arrays, Pillow's images. Out: RGB bytes, and prompts in which the ids of
pictures stand at their places, as `tg chat` and `tg run` make them.

In a prompt's text a picture is a mark: the one that the chat template writes, or one that nobody can guess. A mark in a user's
text must not show a picture, so another word replaces it until the template has been applied."""
import io
import json
import os
import re
import secrets

from .calls import lib
from .context import ArgumentError
from .tensor import Tensor


class Picture:
    """RGB bytes of rows of pixels."""

    def __init__(self, rgb, height, width):
        self.rgb, self.height, self.width = bytearray(rgb), height, width
        self.size = self.rgb, height, width  # as the functions of the library take it


def picture(x):
    """A picture of a path, the bytes of a file, an array or a tensor of bytes (height, width, 3), or an image of Pillow's."""
    if isinstance(x, Picture):
        return x
    if isinstance(x, (str, os.PathLike)):
        with open(x, "rb") as f:
            return of_file(f.read(), os.fspath(x))
    if isinstance(x, (bytes, bytearray)):
        return of_file(bytes(x), "the picture")
    if hasattr(x, "convert") and hasattr(x, "getexif"):
        return of_image(x)
    view = x.data() if isinstance(x, Tensor) else memoryview(x)
    if view.ndim != 3 or view.shape[2] != 3 or view.format != "B":
        raise ArgumentError(f"a picture is bytes (height, width, 3), not {tuple(view.shape)} of format {view.format!r}")
    return Picture(view.tobytes(), *view.shape[:2])


def of_file(data, name):
    """PPM is read here, PNG, JPEG and the rest by Pillow."""
    head = re.match(rb"P6\s+(\d{1,6})\s+(\d{1,6})\s+255\s", data)
    if head:
        width, height = map(int, head.groups())
        rgb = data[head.end():head.end() + 3 * width * height]
        if len(rgb) < 3 * width * height:
            raise ArgumentError(f"{name}: the file ends early")
        return Picture(rgb, height, width)
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise ArgumentError(f"{name}: no PPM, and PNG and JPEG need Pillow (pip install pillow)") from None
    try:
        return of_image(Image.open(io.BytesIO(data)))
    except (UnidentifiedImageError, OSError) as e:
        raise ArgumentError(f"{name}: {e}") from None


def of_image(image):
    from PIL import ImageOps
    image = ImageOps.exif_transpose(image).convert("RGB")
    return Picture(image.tobytes(), image.height, image.width)


def parts_of(content):
    """The texts and pictures of a message's content: a text, or a list of texts, pictures, {"type": "text", "text": ..} and
    {"type": "image", "image": ..}."""
    parts = []
    for part in [content] if isinstance(content, str) else content:
        if isinstance(part, dict):
            part = part["text"] if part.get("type") == "text" else picture(part["image"])
        parts.append(part if isinstance(part, str) else picture(part))
    return parts


class Prompt:
    """Ids, and the views of pictures among them: (place of the first id, picture, view)."""

    def __init__(self, ids, views=()):
        self.ids, self.views = list(ids), list(views)


class Sight:
    """What reads pictures for a model: a mmproj file, or a folder that has both. tiles: beside a large picture, at most."""

    def __init__(self, model, path, tiles=None):
        # of the model's handle: this object belongs to the model, and must not keep it
        self._handle = lib.tg_vision_open(model._handle, path, tiles={None: 0, 0: -1}.get(tiles, tiles))
        about = lib.tg_vision_about(self)
        self.tokens, self.closes = about.tokens, bool(about.end)
        self.marks = [m.decode() for m in about.mark if m]
        self.mark, self.guard = f"[picture-{secrets.token_hex(8)}]", f"[guard-{secrets.token_hex(8)}]"
        self.lists = None  # whether the template takes lists of parts; None: nobody has asked it

    def text(self, p, view):
        return lib.tg_vision_text(self, p.height, p.width, view)

    def views(self, p):
        return lib.tg_vision_views(self, p.height, p.width)

    # ---- texts
    def ask(self, model, template):
        """A template takes lists if it writes one mark for a picture, and the text once."""
        try:
            text = self.render(model, template, [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "PROBE"}]}])
        except ArgumentError:
            text = ""
        found = [m for m in self.marks if text.count(m) == 1 and text.count("PROBE") == 1]
        self.lists = bool(found)
        self.mark = found[0] if found else self.mark

    @staticmethod
    def render(model, template, messages):
        word = lambda role: model.special(role) or ""
        asked = {"messages": messages, "add_generation_prompt": True, "bos_token": word("BOS"), "eos_token": word("EOS")}
        return lib.tg_template_render(template, json.dumps(asked)).decode()

    def joined(self, parts):
        """A content as one text: marks before the text."""
        shown = sum(not isinstance(p, str) for p in parts)
        return (self.mark + ("" if self.closes else "\n")) * shown + self.safe("".join(p for p in parts if isinstance(p, str)))

    def safe(self, text):
        return text.replace(self.mark, self.guard)

    def chat(self, model, template, messages):
        """(text, pictures) of a conversation."""
        if self.lists is None:
            self.ask(model, template)
        contents = [parts_of(m["content"]) for m in messages]
        listed = lambda parts: [{"type": "text", "text": self.safe(p)} if isinstance(p, str) else {"type": "image"} for p in parts]
        rows = [{"role": m["role"], "content": listed(c) if self.lists else self.joined(c)} for m, c in zip(messages, contents)]
        return self.render(model, template, rows), [p for parts in contents for p in parts if not isinstance(p, str)]

    def placed(self, text, pictures):
        """A plain prompt: pictures stand at the model's marks, if there is one for each, or before the text."""
        mark = self.marks[0] if self.marks else None
        if pictures and mark and text.count(mark) == len(pictures):
            return text.replace(mark, self.mark)
        return self.joined([*pictures, text])

    # ---- ids
    def prompt(self, model, text, pictures, special):
        """The ids of a text with a mark for each picture."""
        more = lambda s: model.tokenize(s, special=True, ends=False, inside=True)
        parts, ids, views, after = text.split(self.mark), [], [], ""
        if len(parts) != len(pictures) + 1:
            raise ArgumentError(f"the prompt has a place for {len(parts) - 1} pictures, and there are {len(pictures)}")
        for k, part in enumerate(parts):
            part = part.replace(self.guard, self.mark)
            before, after = after, self.text(pictures[k], 0) if k < len(pictures) else ""
            if special:  # one text, because blank lines where they meet may be one token
                part, before, after = before + part + after, "", ""
            ids += more(before) if before else []
            ids += model.first_ids(part, special) if not k else model.tokenize(part, special=special, ends=False, inside=True)
            ids += more(after) if after else []
            if k < len(pictures):
                self.put(pictures[k], ids, views, more)
                after = self.text(pictures[k], self.views(pictures[k]))
        return Prompt(ids, views)

    def put(self, p, ids, views, more):
        n = self.views(p)
        every = lib.tg_vision_ids(self, *p.size, n * self.tokens)
        for i in range(n):
            ids += more(self.text(p, i)) if i else []
            views.append((len(ids), p, i))
            ids += every[i * self.tokens:(i + 1) * self.tokens]
