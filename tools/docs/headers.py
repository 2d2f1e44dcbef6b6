"""headers.py: the public headers as data. In: the text of a header. Out: its sections, each with its prose and its entries:
functions that share a comment, structs, enums, macros. A declaration without a comment shares the one that stands above the
declarations before it, where no empty line is between; a comment behind a declaration is of that one alone."""
import re
from dataclasses import dataclass, field

HEADERS = ["include/tg.h", "nn/tg_nn.h", "io/tg_io.h", "llm/tg_llm.h"]
SECTION = re.compile(r"---- ")
ERROR = re.compile(r"\bTG_ERR_[A-Z]+")


@dataclass
class Entry:
    names: list       # what it declares; of a function with options the macro's name, tg_sum
    code: list        # the declarations, as they stand
    text: str = ""    # its comment, lines kept
    kind: str = "function"
    options: str = "" # the struct that a function's options are


@dataclass
class Section:
    header: str
    title: str
    slug: str
    text: str = ""
    entries: list = field(default_factory=list)


def comment_text(raw):
    """The inside of a comment, without its stars; lines that are indented further keep that."""
    body = raw[2:-2] if raw.endswith("*/") else raw
    lines = [re.sub(r"^\s*\* ?", "", line) if i else line.strip() for i, line in enumerate(body.split("\n"))]
    return "\n".join(line.rstrip() for line in lines).strip()


def tokens(text):
    """(kind, text, blank lines before, stands on the line of what was before): comments, # lines, declarations"""
    at, out = 0, []
    while at < len(text):
        gap = re.match(r"\s*", text[at:]).group()
        at += len(gap)
        if at >= len(text):
            break
        same_line = "\n" not in gap and bool(out)
        if text.startswith("/*", at):
            end, kind = text.index("*/", at) + 2, "comment"
        elif text[at] == "#":
            end, kind = at, "directive"
            while True:
                end = text.index("\n", end)
                if text[end - 1] != "\\":
                    break
                end += 1
        else:
            end, kind = declaration_end(text, at), "declaration"
        out.append((kind, text[at:end], gap.count("\n") - 1, same_line))
        at = end
    return out


def declaration_end(text, at):
    depth, i = 0, at
    while i < len(text):
        if text.startswith("/*", i):
            i = text.index("*/", i) + 2
            continue
        c = text[i]
        depth += c in "({[" 
        depth -= c in ")}]"
        if c == ";" and depth == 0:
            return i + 1
        if c == "{" and text[at:i].strip() == 'extern "C"':
            return i + 1
        if c == "}" and depth < 0:
            return i + 1
        i += 1
    return len(text)


def split_title(text):
    """A section's comment: its title, and the prose after it."""
    text = text.split("---- ", 1)[1]
    m = re.search(r"[.:;](?=\s|$)| \[options\]| \(docs/|\n(?=[A-Z\[])", text)
    title = " ".join((text[: m.start()] if m else text).split())
    rest = text[m.start():] if m else ""
    return title, re.sub(r"^[.:;]\s*", "", rest).strip()


def slug_of(header, title, taken):
    stem = header.split("/")[-1][:-2].replace("_", "-")
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-").split("-")
    slug = stem + "-" + "-".join(words[:4])
    while slug in taken:
        slug += "-more"
    taken.add(slug)
    return slug


def without_cxx(text):
    """C alone: what stands under #ifdef __cplusplus is left out, of #ifndef __cplusplus the first half is kept."""
    out, stack = [], []
    for line in text.split("\n"):
        word = line.split()[:2]
        if word[:1] and word[0].startswith("#if"):
            stack.append("no" if line.startswith("#ifdef __cplusplus") else "yes" if line.startswith("#ifndef __cplusplus") else "any")
            continue
        if word[:1] == ["#else"]:
            stack[-1] = {"no": "yes", "yes": "no", "any": "any"}[stack[-1]]
            continue
        if word[:1] == ["#endif"]:
            stack.pop()
            continue
        if "no" not in stack:
            out.append(line)
    return "\n".join(out)


def parse(header, text, taken):
    text = without_cxx(text)
    options = dict(re.findall(r"#define (tg_\w+)\(\.\.\.\)\s*\\?\s*TG_OPT\d_\(\w+, (Tg\w+),", text))
    for m in re.finditer(r"#define (tg_\w+)\(([^.)]*)\.\.\.\)\s*\\?\s*\\?\n?.*?(Tg\w+Options)", text):
        options.setdefault(m.group(1), m.group(3))
    sections, comments, above, lead, about = [], [], None, None, ""
    now = Section(header, "Types and options", slug_of(header, "types", taken))
    for kind, raw, blanks, same_line in tokens(text):
        if kind == "comment":
            body = comment_text(raw)
            if not sections and not now.entries and not about:
                about = body
            elif SECTION.match(body):
                if now.entries:
                    sections.append(now)
                title, rest = split_title(body)
                now = Section(header, title, slug_of(header, title, taken), rest)
                comments, above, lead = [], None, None
            elif same_line and above:
                above = with_comment(now, above, body)
            elif body != "clang-format off" and body != "clang-format on":
                if comments and blanks < 1:
                    now.text = (now.text + "\n" + comments.pop()).strip() if not now.entries else now.text
                comments = [body]
            continue
        entry = entry_of(kind, raw, options)
        if not entry:
            comments = []
            continue
        if comments:
            entry.text = comments.pop()
            now.entries.append(entry)
            lead = entry
        elif entry.kind == "function" and blanks < 1 and above and above.kind == "function":
            joined = lead or above
            joined.names += entry.names
            joined.code += entry.code
            joined.options = joined.options or entry.options
            entry = joined
        else:
            if above and above.kind == "type" and blanks < 1 and entry.kind == "function":
                entry.text = above.text   # what a handle is, and how it is made, is said once
            now.entries.append(entry)
            lead = entry if entry.text else None
        above = entry
    if now.entries:
        sections.append(now)
    return about, sections


def with_comment(section, entry, body):
    """A comment behind a declaration is its own: it leaves the entry that it had joined."""
    if entry.kind == "function" and len(entry.names) > 1:
        alone = Entry([entry.names.pop()], [entry.code.pop()], body, entry.kind)
        section.entries.append(alone)
        return alone
    entry.text = (entry.text + " " + body).strip()
    return entry


def entry_of(kind, raw, options):
    if kind == "directive":
        m = re.match(r"#define\s+(TG_\w+)", raw)
        hidden = not m or m.group(1).endswith("_") or m.group(1) in ("TG_API", "TG_H", "TG_STATUS_DEFINED", "TG_NN_H", "TG_IO_H", "TG_LLM_H")
        return None if hidden else Entry([m.group(1)], [raw], kind="macro")
    code = re.sub(r"\s+", " ", raw) if raw.startswith("TG_API") else raw
    if code.startswith("TG_API"):
        m = re.search(r"\b(tg_\w+)\s*\(", code)
        name = m.group(1)
        shown = name[:-4] if name.endswith("_opt") and name[:-4] in options else name
        return Entry([shown], [code[7:]], options=options.get(shown, ""))
    m = re.match(r"typedef (?:struct|enum|union) (Tg\w+)", code) or re.search(r"\(\*(Tg\w+)\)", code)
    return Entry([m.group(1)], [code], kind="type") if m else None


def load(root):
    """Each header: its name, what it says of itself, its sections."""
    taken, out = set(), []
    for header in HEADERS:
        about, sections = parse(header, (root / header).read_text(), taken)
        out.append((header, about, sections))
    return out


def sentences(text):
    return re.split(r"(?<=[.;])\s+(?=[A-Z*])|\n\n", text)


def errors_of(entry, section):
    """The sentences that say which errors there are: of the function, else of its section."""
    found = [s for s in sentences(entry.text) if ERROR.search(s)]
    return found or [s for s in sentences(section.text) if ERROR.search(s)]
