"""man.py: man pages in man(7)'s macros. Section 1: tg and each of its commands, which tg writes itself. Section 3: one for each
section of the headers, and for each function a file that leads to it."""
import subprocess

import headers


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in text.split("\n"))


def paragraphs(text):
    """Prose is filled; lines that are set in are code."""
    out, code = [], False
    for line in text.split("\n"):
        inside = line.startswith("  ")
        if inside != code:
            out.append(".nf\n.RS" if inside else ".RE\n.fi")
            code = inside
        out.append(roff(line.strip() if not inside else line[2:]) if line.strip() else ".PP")
    return "\n".join(out + ([".RE\n.fi"] if code else []))


def entry(e, section, found):
    names = ", ".join(e.names)
    out = [f".SS {roff(names)}", ".nf", roff("\n".join(e.code)), ".fi"]
    if e.text:
        out += [".PP", paragraphs(e.text)]
    errors = headers.errors_of(e, section) if e.kind == "function" and not headers.ERROR.search(e.text) else []
    if errors:
        out += [".PP", "Errors: " + roff(" ".join(" ".join(errors).split()))]
    code = next((found[n][0] for n in e.names if n in found), "") if e.kind == "function" else ""
    if code:
        out += [".PP", "Example:", ".PP", ".nf", ".RS", roff(code), ".RE", ".fi"]
    return "\n".join(out)


def page(header, section, found):
    functions = [n for e in section.entries if e.kind == "function" for n in e.names]
    title = section.slug.upper().replace("-", "_")
    name = ", ".join(functions[:60]) or section.slug.replace("-", "_")
    out = [f'.TH {title} 3 "" "tinygrad\\-c"', ".SH NAME", f"{roff(name)} \\- {roff(section.title)}", ".SH SYNOPSIS", f"#include <{header.split('/')[-1]}>"]
    out += [".SH DESCRIPTION", paragraphs(section.text or section.title)]
    return "\n".join(out + [entry(e, section, found) for e in section.entries]) + "\n"


def write(tg, out, api, types, found, commands):
    one, three = out / "man1", out / "man3"
    one.mkdir(parents=True, exist_ok=True), three.mkdir(parents=True, exist_ok=True)
    for words in [[]] + [c["command"].split() for c in commands]:
        text = subprocess.run([tg, "manual"] + words, check=True, capture_output=True, text=True).stdout
        (one / ("-".join(["tg"] + words) + ".1")).write_text(text)
    count = len(commands) + 1
    for header, _, sections in api:
        for s in sections:
            (three / f"{s.slug}.3").write_text(page(header, s, found))
            count += 1
            for e in s.entries:
                for n in e.names if e.kind == "function" else []:
                    (three / f"{n}.3").write_text(f".so man3/{s.slug}.3\n")
    return count
