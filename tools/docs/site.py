#!/usr/bin/env python3
"""site.py BUILD OUT: docs/, the reference of the public headers and the commands of tg as a site of static pages, and man pages.
In: the repository, and BUILD/tg. Out: OUT/*.html with one style, one script and one index of search, all read from the disk
too; OUT/man. Nothing is fetched. site.py --check: nothing is written; what the reference lacks is told, exit 1."""
import html
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True
import diagram
import examples
import headers
import man
import markdown

GUIDES = [("Begin", ["README", "tour", "embedding", "python", "performance", "inside", "howto", "vocabulary"]),
          ("How it works", ["scheduler", "codegen", "memory", "many", "cuda", "metal"]),
          ("Models", ["programs", "export", "llm", "serve"]), ("Beside tinygrad", ["api-parity"])]
NOT_PAGES = {"api-parity-head"}
HEADER_TITLES = {"include/tg.h": "Tensors (tg.h)", "nn/tg_nn.h": "Layers and optimisers (tg_nn.h)", "io/tg_io.h": "Files and data (tg_io.h)",
                 "llm/tg_llm.h": "Language models (tg_llm.h)"}
PLAIN_ERRORS = ("A builder that is given NULL gives NULL; the first error stays in the context, with the operation and the shapes "
                "(tg_error, tg_errmsg).")


class Links:
    """Where names and files lead to; what was asked for and is not there is kept, to be told."""

    def __init__(self):
        self.names, self.pages, self.missing = {}, {}, set()

    def name(self, word):
        word = word if word in self.names else word[:-4] if word.endswith("_opt") else word
        return self.names.get(word)

    def page(self, file):
        return self.pages.get(file)

    def target(self, url):
        if re.match(r"[a-z]+:|#", url):
            return url
        path, _, part = url.partition("#")
        place = self.pages.get(path.split("/")[-1])
        if not place:
            self.missing.add(url)
        return (place or "index.html") + ("#" + part if part else "")


def guides():
    """The Markdown files by name, the README first."""
    found = {"README": ROOT / "README.md"}
    found.update({p.stem: p for p in sorted((ROOT / "docs").glob("*.md")) if p.stem not in NOT_PAGES})
    return found


def html_name(stem):
    return "index.html" if stem == "README" else stem + ".html"


def figure(kind, what, code):
    picture = diagram.svg(code, what) if kind == "dump" else ""
    if not picture:
        return ""
    small = picture.count("<g ") <= 24
    return f'<figure><details{" open" if small else ""}><summary>the same as a picture</summary>{picture}</details></figure>'


def nav(here, api):
    def items(pairs):
        return "".join(f'<li><a href="{place}"{" aria-current=page" if place == here else ""}>{html.escape(title)}</a></li>' for place, title in pairs)
    out = []
    for title, stems in GUIDES:
        pairs = [(html_name(s), "What it is" if s == "README" else TITLES[s]) for s in stems if s in TITLES]
        out.append(f"<details open><summary>{title}</summary><ul>{items(pairs)}</ul></details>")
    out.append(f'<details open><summary>Reference</summary><ul>{items([("commands.html", "The command tg"), ("api.html", "Every function")])}</ul></details>')
    for header, _, sections in api:
        pairs = [(f"{s.slug}.html", s.title) for s in sections]
        is_open = " open" if any(place == here for place, _ in pairs) else ""
        out.append(f"<details{is_open}><summary>{HEADER_TITLES[header]}</summary><ul>{items(pairs)}</ul></details>")
    return "".join(out)


TITLES = {}
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: tinygrad-c</title><link rel="icon" href="data:,"><link rel="stylesheet" href="site.css"></head><body>
<header><button id="menu" aria-label="contents" aria-expanded="false">&#9776;</button><a class="home" href="index.html">tinygrad<span>-c</span></a>
<div class="seek"><input id="search" type="search" placeholder="search ( / )" aria-label="search" autocomplete="off"><ul id="found"></ul></div>
<button id="theme" aria-label="light or dark">&#9680;</button></header>
<div class="page"><nav aria-label="contents">{nav}</nav><main>
{body}
</main></div><script src="index.js"></script><script src="site.js"></script></body></html>
"""


# ---- the reference
def options_html(entry, types, links):
    """The struct that a function's options are, without what the macros fill in."""
    if not entry.options or entry.options not in types:
        return ""
    fields = [line for line in types[entry.options].code[0].split("\n")[1:-1] if not re.match(r"\s*(size_t size|const char \*set|int end_);", line)]
    code = "\n".join(line[2:] for line in fields)
    return f'<h4>Options (<a href="{links.name(entry.options)}">{entry.options}</a>)</h4><pre class="c"><code>{markdown.c_code(code, links)}</code></pre>'


def examples_html(entry, found, links):
    out, seen = [], set()
    for name in entry.names:
        code, where = found.get(name, (None, None))
        if not code or code in seen:
            continue
        seen.add(code)
        out.append(f'<pre class="c"><code>{markdown.c_code(code, links)}</code></pre><p class="where">{where}</p>')
    return ("<h4>Example" + ("s" if len(out) > 1 else "") + "</h4>" + "".join(out)) if out else ""


def entry_html(entry, section, types, found, links):
    title = ", ".join(f'<span id="{n}">{n}</span>' for n in entry.names)
    code = "\n".join(entry.code)
    out = [f'<section class="entry"><h3>{title}</h3><pre class="c"><code>{markdown.c_code(code, links)}</code></pre>', markdown.prose(entry.text, links)]
    if entry.kind == "function":
        out.append(options_html(entry, types, links))
        errors = headers.errors_of(entry, section)
        own = headers.ERROR.search(entry.text)
        builds = any(c.startswith("TgTensor *") for c in entry.code)
        if not own and (errors or builds):
            out.append("<h4>Errors</h4>" + markdown.prose(" ".join(errors) if errors else PLAIN_ERRORS, links))
        out.append(examples_html(entry, found, links))
    return "".join(out) + "</section>"


def section_html(section, types, found, links):
    title = section.title[0].upper() + section.title[1:]
    out = [f"<h1>{html.escape(title)}</h1><p class=where>#include &lt;{section.header.split('/')[-1]}&gt;</p>", markdown.prose(section.text, links)]
    functions = [n for e in section.entries if e.kind == "function" for n in e.names]
    if len(functions) > 6:
        out.append("<p>" + " ".join(f'<a href="#{n}"><code>{n}</code></a>' for n in functions) + "</p>")
    return "\n".join(out + [entry_html(e, section, types, found, links) for e in section.entries])


def every_function_html(api, links):
    out = ["<h1>Every function</h1>"]
    for header, about, sections in api:
        out.append(f"<h2>{HEADER_TITLES[header]}</h2>" + markdown.prose(about, links))
        for s in sections:
            names = sorted(n for e in s.entries for n in e.names)
            out.append(f'<h3><a href="{s.slug}.html">{html.escape(s.title)}</a></h3><p>' + " ".join(f'<a href="{links.name(n)}"><code>{n}</code></a>' for n in names) + "</p>")
    return "\n".join(out)


# ---- the commands
def commands_of(tg):
    text = subprocess.run([tg, "manual", "--json"], check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in text.splitlines()]


def commands_html(commands):
    out = ["<h1>The command tg</h1>"]
    for c in commands:
        e, name = html.escape, c["command"]
        rows = "".join(f'<tr><td><code>--{e(o["option"])}{" " + e(o["value"]) if "value" in o else ""}</code></td><td>{e(o["help"])}</td></tr>' for o in c["options"])
        out.append(f'<section class="entry"><h3 id="tg-{name.replace(" ", "-")}">tg {e(name)} {e(c["arguments"])}</h3><p>{e(c["summary"])}</p>'
                   + (f'<div class="wide"><table>{rows}</table></div>' if rows else "") + (f'<p>{e(c["more"])}</p>' if "more" in c else "") + "</section>")
    return "\n".join(out)


# ---- what the reference lacks
SHAPE = re.compile(r"\([^()]*[a-z0-9][^()]*\)|\bshapes?\b|\baxis\b|\baxes\b|\bsizes?\b|\bview\b|broadcast|elementwise")
DTYPE = re.compile(r"\bdtypes?\b|\bfloats?\b|\bintegers?\b|\bbool\b|\b[iu](?:8|16|32|64)\b|\bb?f(?:16|32|64)\b|\bbits?\b")


def lacking(api, found):
    """Lines: functions without a text or an example, and functions that give tensors of which shape, dtype or errors are not said."""
    out = []
    for header, about, sections in api:
        for s in sections:
            for e in s.entries:
                if e.kind != "function":
                    continue
                text = f"{s.title}. {s.text}\n{e.text}"
                if not (e.text or s.text):
                    out.append(f"{header}: {e.names[0]}: no comment, and its section has none")
                out += [f"{header}: {n}: no test or example calls it" for n in e.names if n not in found]
                if any(c.startswith("TgTensor *") for c in e.code):
                    for what, form in (("shape", SHAPE), ("dtype", DTYPE), ("error", headers.ERROR)):
                        if not form.search(text):
                            out.append(f"{header}: {', '.join(e.names[:3])}: no {what} is told, here or in its section")
    return out


# ---- search
def first_words(text):
    return " ".join(re.sub(r"<[^>]+>", "", text).split())[:140]


def search_of(api, pages, commands):
    index = []
    for header, _, sections in api:
        for s in sections:
            index.append([s.title, f"{s.slug}.html", first_words(s.text)])
            for e in s.entries:
                index += [[n, f"{s.slug}.html#{n}", first_words(e.text or s.title)] for n in e.names]
    for place, (title, found, body) in pages.items():
        index += [[words, f"{place}#{anchor}" if level > 1 else place, title if level > 1 else first_words(body)] for level, anchor, words in found]
    index += [["tg " + c["command"], "commands.html#tg-" + c["command"].replace(" ", "-"), c["summary"]] for c in commands]
    return index


def write_site(build, out):
    api = headers.load(ROOT)
    types = {n: e for _, _, sections in api for s in sections for e in s.entries if e.kind == "type" for n in e.names}
    links = Links()
    for _, _, sections in api:
        for s in sections:
            for e in s.entries:
                links.names.update({n: f"{s.slug}.html#{n}" for n in e.names})
    files = guides()
    links.pages = {f"{stem}.md": html_name(stem) for stem in files}
    found = examples.load(ROOT, {n for n in links.names if n.startswith("tg_")})
    commands, pages = commands_of(f"{build}/tg"), {}
    for stem, path in files.items():
        body, headings = markdown.render(path.read_text(), links, figure)
        TITLES[stem] = headings[0][2]
        pages[html_name(stem)] = (TITLES[stem], headings, body)
    out.mkdir(parents=True, exist_ok=True)
    every = {place: (title, body) for place, (title, _, body) in pages.items()}
    every["commands.html"] = ("The command tg", commands_html(commands))
    every["api.html"] = ("Every function", every_function_html(api, links))
    for _, _, sections in api:
        for s in sections:
            every[f"{s.slug}.html"] = (s.title, section_html(s, types, found, links))
    for place, (title, body) in every.items():
        (out / place).write_text(PAGE.format(title=html.escape(title), nav=nav(place, api), body=body))
    index = json.dumps(search_of(api, pages, commands), separators=(",", ":")).replace("</", "<\\/")
    (out / "index.js").write_text("const SEARCH = " + index + "\n")
    for name in ("site.css", "site.js"):
        (out / name).write_bytes((HERE / name).read_bytes())
    manuals = man.write(f"{build}/tg", out / "man", api, types, found, commands)
    if links.missing:
        sys.exit("docs: links that lead nowhere: " + ", ".join(sorted(links.missing)))
    print(f"{len(every)} pages, {len(index) // 1024} KiB of search, {manuals} man pages: {out}/index.html")


def main():
    if sys.argv[1:] == ["--check"]:
        api = headers.load(ROOT)
        names = {n for _, _, sections in api for s in sections for e in s.entries if e.kind == "function" for n in e.names}
        wrong = lacking(api, examples.load(ROOT, names))
        print("\n".join(wrong + [f"{len(names)} functions, {len(wrong)} things lack"]))
        sys.exit(bool(wrong))
    if len(sys.argv) != 3:
        sys.exit("usage: site.py BUILD OUT | site.py --check")
    write_site(sys.argv[1], pathlib.Path(sys.argv[2]))


if __name__ == "__main__":
    main()
