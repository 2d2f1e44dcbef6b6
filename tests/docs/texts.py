"""texts.py BUILD: README.md and docs/*.md as they are typed: short lines and headings, tables that are tables, and nothing named that is not
there: files, commands of tg with their options, targets of make, variables, functions."""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLUMNS, HEADING = 120, 80
FOLDERS = "cli|cmake|docs|emu|examples|include|io|llm|nn|plugin|python|rules|src|tests|tools"
MADE_UP = {"tg_cbrt", "src/renderer/hip.c"}  # what docs/howto.md adds, as an example
PROGRAMS = {"launch", "profile", "explain", "viz", "bisect"}  # what follows a program is for that
build = pathlib.Path(sys.argv[1]).resolve()
wrong = []


def commands():
    """The words of each command of tg, and its options: {("bench", "ops"): {"--runs", ..}}."""
    lines = subprocess.run([build / "tg", "completion", "--json"], check=True, capture_output=True, text=True).stdout.splitlines()
    return {tuple(c["command"]): set(c["options"]) | {"-o", "-n", "--"} for c in map(json.loads, lines)}


def sources():
    """All that the project's own files say, for names of functions and variables."""
    ends = {".c", ".h", ".def", ".rules", ".txt", ".cmake", ".py", ".js", ""}
    folders = [ROOT / f for f in FOLDERS.split("|") if f != "docs"]
    files = [p for f in folders for p in f.rglob("*") if p.suffix in ends and p.is_file() and "golden" not in p.parts]
    return set(re.findall(r"\b(?:TG_[A-Z0-9_]+|tg_[a-z0-9_]+)", "\n".join(p.read_text(errors="replace") for p in [*files, ROOT / "CMakeLists.txt"])))


TG, WORDS = commands(), sources()
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))


def tg_said(code):
    """What is wrong with the calls of tg in a span or a line of code."""
    for call in re.findall(r"(?:^|[|;&(]\s*|\s|/)tg ([a-z][^|;&#]*)", code):
        words = call.split()
        name = next((c for c in (tuple(words[:2]), tuple(words[:1])) if c in TG), None)
        if not name:
            group = [c for c in TG if c[0] == words[0]]
            if words[0] not in ("help", "--version") and not group:
                yield f"there is no tg {words[0]}"
            continue
        for word in words[len(name):]:
            if word == "--" or name[0] in PROGRAMS and not word.startswith("-"):
                break
            option = re.match(r"--?[a-z][a-z-]*", word)
            if option and option.group() not in TG[name]:
                yield f"tg {' '.join(name)} has no {option.group()}"


def code_said(code):
    yield from tg_said(code)
    for path in re.findall(rf"(?<![\w./-])(?:{FOLDERS})/[\w./*-]*\w", code):
        placeholder = path in MADE_UP or re.search(r"NAME|/x\.", path)
        if not placeholder and not list(ROOT.glob(path)) and not list(ROOT.glob(path + ".*")):
            yield f"there is no {path}"
    for target in re.findall(r"(?:^|[;&] *)make ([a-z][\w-]*)", code):
        if target not in TARGETS:
            yield f"there is no make {target}"
    for name in re.findall(r"\b(?:TG_[A-Z0-9_]*[A-Z0-9]|tg_[a-z0-9_]*[a-z0-9])\b(?![_*])", code):
        if name not in WORDS and name not in MADE_UP:
            yield f"there is no {name}"


def cells(row):
    return len(re.findall(r"(?<!\\)\|", re.sub(r"`[^`]*`", "", row)))


def read(path):
    lines, code, header = path.read_text().split("\n"), False, 0
    for number, line in enumerate(lines, 1):
        def tell(what):
            wrong.append(f"{path.relative_to(ROOT)}:{number}: {what}")
        if line.startswith("```"):
            code, header = not code, 0
            continue
        table = not code and line.startswith("|")
        if code:
            for said in code_said(line):
                tell(said)
            continue
        if table and not line.endswith("|"):
            tell("a row of a table ends in the next line")
        elif table and header and cells(line) != header:
            tell(f"a row of {cells(line) - 1} cells, its table has {header - 1}")
        header = (header or cells(line)) if table else 0
        if not table and len(line) > COLUMNS:
            tell(f"{len(line)} columns")
        if line.startswith("#") and (len(line) > HEADING or re.search(r"[.,;:]$|\. [A-Z]", line.lstrip("#0123456789. "))):
            tell("a heading that is a sentence, or longer than 80 characters")
    prose = re.sub(r"^```.*?^```", lambda m: re.sub(r"[^\n]", "", m.group()), path.read_text(), flags=re.M | re.S)
    for span in re.finditer(r"`([^`]+)`", prose):  # one may go on in the next line
        for said in code_said(re.sub(r"\s+", " ", span.group(1))):
            wrong.append(f"{path.relative_to(ROOT)}:{prose.count(chr(10), 0, span.start()) + 1}: {said}")
    if code:
        wrong.append(f"{path.relative_to(ROOT)}: a block of code without an end")


pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
for page in pages:
    read(page)
print("\n".join(wrong) or f"{len(pages)} texts name what is there")
sys.exit(bool(wrong))
