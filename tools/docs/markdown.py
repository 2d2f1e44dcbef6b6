"""markdown.py: the Markdown of docs/ as HTML: headings, paragraphs, lists, tables, fenced blocks, code, links, bold, italics.
In: a text, and a `links` that knows where names and files lead to. Out: HTML, and the headings as (level, anchor, text)."""
import html
import re

FENCE = re.compile(r"^```(\w*)")
ITEM = re.compile(r"^(\s*)([-*]|\d+\.)\s+")
DUMP = re.compile(r"^<!-- (\w+) (.*?) -->$")
KEYWORDS = ("auto break case char const continue default do double else enum extern float for goto if int long return short "
            "signed sizeof static struct switch typedef union unsigned void volatile while bool true false NULL").split()
C_TOKEN = re.compile(r'(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<string>"(?:\\.|[^"\\\n])*")|(?P<directive>^[ \t]*#\w+)'
                     r"|(?P<number>\b\d[\w.]*)|(?P<word>\b[A-Za-z_]\w*)", re.S | re.M)


def anchor(text):
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"[`*]", "", text).lower()).strip("-")


def c_code(code, links):
    """C with colours, its functions and types as links."""
    out, at = [], 0
    for m in C_TOKEN.finditer(code):
        out.append(html.escape(code[at : m.start()]))
        text, kind = html.escape(m.group()), m.lastgroup
        if kind == "word":
            place = links.name(m.group())
            text = f'<a href="{place}">{text}</a>' if place else f"<b>{text}</b>" if m.group() in KEYWORDS else text
        else:
            text = f'<span class="{kind}">{text}</span>'
        out.append(text)
        at = m.end()
    out.append(html.escape(code[at:]))
    return "".join(out)


def code_span(code, links):
    text = html.escape(code)
    m = re.match(r"(?:docs/)?([\w-]+\.md)$", code)
    place = links.page(m.group(1)) if m else None
    if place:
        return f'<a href="{place}"><code>{text}</code></a>'

    def name(m):
        place = links.name(m.group())
        return f'<a href="{place}">{m.group()}</a>' if place else m.group()
    return "<code>" + re.sub(r"\b(?:tg|Tg|TG)_?\w+", name, text) + "</code>"


def inline(text, links):
    """One line of prose. Code is set aside first, so that nothing in it is taken for a mark."""
    kept = []

    def keep(piece):
        kept.append(piece)
        return f"\0{len(kept) - 1}\0"
    text = re.sub(r"(`+)(.+?)\1", lambda m: keep(code_span(m.group(2).strip(), links)), text)
    text = html.escape(text, quote=False)
    text = re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", lambda m: keep(f'<a href="{html.escape(links.target(m.group(2)))}">') + m.group(1) + keep("</a>"), text)
    text = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", text)
    text = re.sub(r"(?<![\w*])\*([^*\s](?:[^*]*[^*\s])?)\*(?![\w*])", r"<em>\1</em>", text)
    text = re.sub(r"\bdocs/([\w-]+\.md)", lambda m: f'<a href="{links.page(m.group(1))}">{m.group()}</a>' if links.page(m.group(1)) else m.group(), text)
    return re.sub("\0(\\d+)\0", lambda m: kept[int(m.group(1))], text)


def table(rows, links):
    def cells(row):
        row = row.strip().strip("|").replace("\\|", "\1")
        parts, now, code = [], "", False
        for c in row:
            code ^= c == "`"
            if c == "|" and not code:
                parts.append(now)
                now = ""
            else:
                now += c
        return [inline(p.strip().replace("\1", "|"), links) for p in parts + [now]]
    head = "".join(f"<th>{c}</th>" for c in cells(rows[0]))
    body = "".join("<tr>" + "".join(f"<td>{c}</td>" for c in cells(row)) + "</tr>\n" for row in rows[2:])
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table></div>'


def listing(lines, links, figure):
    """Lines of one list; what is indented below an item is part of it."""
    indent = len(ITEM.match(lines[0]).group(1))
    tag = "ol" if lines[0].lstrip()[0].isdigit() else "ul"
    items = []
    for line in lines:
        m = ITEM.match(line)
        if m and len(m.group(1)) == indent:
            items.append([line[m.end():]])
        else:
            items[-1].append(line)
    out = []
    for item in items:
        cut = next((i for i, line in enumerate(item) if i and ITEM.match(line)), len(item))
        text = inline(" ".join(line.strip() for line in item[:cut]), links)
        out.append(f"<li>{text}{listing(item[cut:], links, figure) if cut < len(item) else ''}</li>")
    return f"<{tag}>" + "\n".join(out) + f"</{tag}>"


def fenced(language, code, links):
    if language in ("c", "cc", "cpp") or (not language and re.search(r"\btg_\w+\(|TgTensor", code)):
        return f'<pre class="c"><code>{c_code(code, links)}</code></pre>'
    return f"<pre><code>{html.escape(code)}</code></pre>"


def render(text, links, figure=None):
    """figure(kind, what, code): HTML that stands below a block that a comment <!-- kind what --> announces, or ''"""
    out, headings, lines, i = [], [], text.split("\n"), 0
    said = None
    while i < len(lines):
        line = lines[i]
        if DUMP.match(line):
            said = DUMP.match(line).groups()
            i += 1
        elif FENCE.match(line):
            language, end = FENCE.match(line).group(1), i + 1
            while end < len(lines) and not lines[end].startswith("```"):
                end += 1
            code = "\n".join(lines[i + 1 : end])
            out.append(fenced(language, code, links))
            if figure and said:
                out.append(figure(*said, code))
            said, i = None, end + 1
        elif re.match(r"#{1,5} ", line):
            level, words = len(line) - len(line.lstrip("#")), line.lstrip("#").strip()
            headings.append((level, anchor(words), re.sub(r"[`*]", "", words)))
            out.append(f'<h{level} id="{anchor(words)}">{inline(words, links)}</h{level}>')
            i += 1
        elif line.startswith("|") and i + 1 < len(lines) and re.match(r"\|[\s:|-]+$", lines[i + 1]):
            end = i
            while end < len(lines) and lines[end].startswith("|"):
                end += 1
            out.append(table(lines[i:end], links))
            i = end
        elif ITEM.match(line):
            end = i + 1
            while end < len(lines) and (ITEM.match(lines[end]) or (lines[end].startswith("  ") and lines[end].strip())):
                end += 1
            out.append(listing(lines[i:end], links, figure))
            i = end
        elif not line.strip():
            i += 1
        else:
            end = i + 1
            while end < len(lines) and lines[end].strip() and not re.match(r"#{1,5} |```|\||<!-- ", lines[end]) and not ITEM.match(lines[end]):
                end += 1
            out.append(f"<p>{inline(' '.join(s.strip() for s in lines[i:end]), links)}</p>")
            i = end
    return "\n".join(out), headings


def prose(text, links):
    """The text of a comment in C: paragraphs, lines that are set in are code, names are links."""
    out, block = [], []

    def name(m):
        place = links.name(m.group())
        return f'<a href="{place}"><code>{m.group()}</code></a>' if place else f"<code>{m.group()}</code>"

    def flush():
        words = " ".join(line.strip() for line in block)
        if words:
            words = html.escape(words, quote=False)
            words = re.sub(r"\bdocs/([\w-]+\.md)", lambda m: f'<a href="{links.page(m.group(1))}">{m.group()}</a>' if links.page(m.group(1)) else m.group(), words)
            out.append("<p>" + re.sub(r"\b(?:tg_\w+|Tg[A-Z]\w+|TG_\w+)|(?<![\w.])\.[a-z]\w+", name, words) + "</p>")
        block.clear()
    lines, i = text.split("\n"), 0
    while i < len(lines):
        if lines[i].startswith("  ") and lines[i].strip():
            flush()
            end = i
            while end < len(lines) and (lines[end].startswith("  ") or not lines[end].strip()):
                end += 1
            code = "\n".join(line[2:] for line in lines[i:end]).rstrip()
            out.append(f'<pre class="c"><code>{c_code(code, links)}</code></pre>')
            i = end
            continue
        if not lines[i].strip():
            flush()
        else:
            block.append(lines[i])
        i += 1
    flush()
    return "\n".join(out)
