"""examples.py: for each public function a piece of code that a test compiles and runs. In: the C files of tests/docs, examples/,
tests/ and cli/. Out: the piece and its file. Of tests/docs, written to be shown, a statement that needs nothing else is taken,
or the paragraph; is(x, "text") becomes x with a comment. Of others it is the shortest statement with the call."""
import re

FOLDERS = [("tests/docs", 0), ("examples", 1), ("tests/unit", 2), ("tests/device", 2), ("cli", 3), ("tests/faults", 4), ("tests/export", 4)]
CALL = re.compile(r"\b(tg_[a-z0-9_]+)\s*\(")
NAMED = re.compile(r"\b(tg_[a-z0-9_]+)\s*[(),]")   # where a function is only given, as a table of a module is


def paragraph(text, at):
    """From the last empty line before it (or the function's first line) to the next one."""
    before = max(text.rfind("\n\n", 0, at) + 2, text.rfind("(void)state;\n", 0, at) + 13)
    ends = [i for i in (text.find("\n\n", at), text.find("\n}", at)) if i >= 0]
    return text[before:min(ends) if ends else len(text)]


def statement(text, at):
    """The statement that the call is part of; None where there is none, as in a macro or a table."""
    begin, depth = at, 0
    while begin > 0:
        c = text[begin - 1]
        depth += c in ")}]"
        depth -= c in "({["
        if depth <= 0 and c == ";" or depth == 0 and c == "/" and text[begin - 2] == "*":
            break
        if c == "}" and depth == 1 or c == "{" and re.search(r"(\)|else|do)\s*$", text[max(0, begin - 40) : begin - 1]):
            break
        begin -= 1
    end, depth = begin, 0
    while end < len(text):
        c = text[end]
        if depth == 0 and c == ";":
            piece = text[begin : end + 1]
            return None if "#" in piece or at >= end or "\n}" in piece else piece
        depth += c in "({["
        depth -= c in ")}]"
        if depth < 0:
            return None
        end += 1
    return None


DECLARES = re.compile(r"^\s*(?:static |const |unsigned )?(?:Tg\w+|int|int64_t|float|double|char|size_t)\b[ *]+\w+", re.M)


def shown(text, at):
    """Of a file that is written to be shown."""
    piece, whole = statement(text, at), paragraph(text, at)
    alone = piece and piece.lstrip().startswith("is(") and not DECLARES.search(whole)
    code = re.sub(r"\bT\(", "tg_from_text(ctx, ", piece if alone else whole)
    return re.sub(r'^(\s*)is\((.*),\s*"([^"]*)"\);', lambda m: f"{m.group(1)}{m.group(2)};  /* {m.group(3)} */", code, flags=re.M | re.S) if alone else \
        re.sub(r'^(\s*)is\(((?:(?!;\n).)*),\s*"([^"]*)"\);', lambda m: f"{m.group(1)}{m.group(2)};  /* {m.group(3)} */", code, flags=re.M | re.S)


def plain(code):
    """Lines without the indent that they share."""
    code = code.strip("\n").rstrip()
    lines = code.split("\n")
    rest = [len(line) - len(line.lstrip()) for line in lines[1 if lines[0] == lines[0].lstrip() else 0:] if line.strip()]
    least = min(rest) if rest else 0
    return "\n".join(line[least:] if line[:least].isspace() or not least else line.lstrip() for line in lines)


def cost(piece, rank):
    """Less is better: short, of a file that is written to be read, without the words of a test of errors."""
    odd = len(re.findall(r"NULL|fail|wrong|ERR|bad|broken|hostile", piece))
    return rank * 2000 + len(piece) + 120 * odd


def load(root, names):
    """name -> (code, file). An exported function tg_sum_opt counts as tg_sum."""
    best = {}
    for folder, rank in FOLDERS:
        for path in sorted((root / folder).glob("*.c")):
            text = path.read_text(errors="replace")
            for m in (NAMED if rank <= 1 else CALL).finditer(text):
                name = m.group(1)
                name = name if name in names else name[:-4] if name.endswith("_opt") else name
                if name not in names or (name in best and best[name][0] < rank * 2000):
                    continue
                piece = shown(text, m.start()) if rank == 0 else statement(text, m.start())
                if not piece or len(piece) > (1200 if rank == 0 else 700):
                    continue
                c = cost(piece, rank)
                if name not in best or c < best[name][0]:
                    best[name] = (c, plain(piece), f"{folder}/{path.name}")
    return {name: (code, where) for name, (_, code, where) in best.items()}
