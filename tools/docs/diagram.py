"""diagram.py: a graph in the text form of TG_DUMP as a picture. In: lines `name = OP[arg](sources)`. Out: SVG whose colours are
those of the page's style, so that it is read on light and on dark. Layers are longest paths from the sources; in a layer the
nodes stand near what they read and what reads them (barycentres, some sweeps)."""
import html
import re

WIDE, HIGH, ACROSS, DOWN = 7.3, 34, 18, 34
KINDS = [("memory", {"BUFFER", "PARAM", "DEFINE_LOCAL", "DEFINE_REG"}), ("loop", {"RANGE", "END", "LOOP", "SPECIAL"}),
         ("access", {"INDEX", "LOAD", "STORE", "STAGE"}), ("reduce", {"REDUCE", "REDUCE_AXIS", "ACC", "SCAN", "SCAN_AXIS"}),
         ("move", {"RESHAPE", "EXPAND", "PERMUTE", "PAD", "SHRINK", "FLIP", "VECTORIZE"})]


def parse(text):
    """name -> (op, argument, sources, note); sources that are numbers stay text in the node's label"""
    nodes = {}
    for line in text.split("\n"):
        m = re.match(r"^(\w+) = ([A-Z_0-9]+)", line)
        if not m:
            continue
        rest, note = line[m.end():], ""
        if "  # " in rest:
            rest, note = rest.split("  # ", 1)
        arg = re.match(r"\[.*?\](?=\(|$)", rest)
        arg = arg.group() if arg else ""
        sources = rest[len(arg):].strip()
        words = re.findall(r"[^,\s()]+", sources)
        reads = [w for w in words if w in nodes]
        numbers = [w for w in words if w not in nodes]
        nodes[m.group(1)] = (m.group(2), arg, reads, ", ".join(numbers), note)
    return nodes


def layers_of(nodes):
    depth = {}
    for name, (_, _, reads, _, _) in nodes.items():
        depth[name] = 1 + max((depth[r] for r in reads), default=-1)
    for name in reversed(list(nodes)):   # what has no sources stands just above its first reader
        readers = [depth[n] for n in nodes if name in nodes[n][2]]
        if readers and not nodes[name][2]:
            depth[name] = min(readers) - 1
    rows = [[] for _ in range(max(depth.values()) + 1)]
    for name in nodes:
        rows[depth[name]].append(name)
    return rows


def order(rows, nodes):
    readers = {n: [m for m in nodes if n in nodes[m][2]] for n in nodes}
    for sweep in range(8):
        place = {n: (i + 0.5) / len(row) for row in rows for i, n in enumerate(row)}
        for row in rows:
            near = {n: (nodes[n][2] if sweep % 2 == 0 else readers[n]) or readers[n] or nodes[n][2] for n in row}
            row.sort(key=lambda n: sum(place[m] for m in near[n]) / len(near[n]) if near[n] else place[n])
    return rows


def label(name, node):
    op, arg, _, numbers, note = node
    text = op + (arg if len(arg) <= 26 else arg[:24] + "..]")
    small = " ".join(w for w in (name, f"({numbers})" if numbers else "", note) if w)
    return text, small if len(small) <= 34 else small[:32] + ".."


def svg(text, title):
    nodes = parse(text)
    if not nodes:
        return ""
    rows, box, y = order(layers_of(nodes), nodes), {}, 8
    width = 0
    for row in rows:
        x = 0
        for n in row:
            w = 16 + WIDE * max(len(t) * (1 if i == 0 else 0.86) for i, t in enumerate(label(n, nodes[n])))
            box[n] = [x, y, w]
            x += w + ACROSS
        width, y = max(width, x - ACROSS), y + HIGH + DOWN
    for row in rows:   # each row in the middle
        right = box[row[-1]][0] + box[row[-1]][2]
        for n in row:
            box[n][0] += (width - right) / 2 + 8
    out = [f'<svg class="graph" role="img" viewBox="0 0 {width + 16:.0f} {y - DOWN + 8:.0f}" width="{width + 16:.0f}"><title>{html.escape(title)}</title>']
    for n, (_, _, reads, _, _) in nodes.items():
        for r in reads:
            x1, y1, x2, y2 = box[r][0] + box[r][2] / 2, box[r][1] + HIGH, box[n][0] + box[n][2] / 2, box[n][1]
            bend = (y2 - y1) / 2
            out.append(f'<path d="M{x1:.0f} {y1:.0f}C{x1:.0f} {y1 + bend:.0f} {x2:.0f} {y2 - bend:.0f} {x2:.0f} {y2:.0f}"/>')
    for n, node in nodes.items():
        x, y0, w = box[n]
        kind = next((k for k, ops in KINDS if node[0] in ops), "alu")
        big, small = label(n, node)
        out.append(f'<g class="{kind}"><rect x="{x:.0f}" y="{y0}" width="{w:.0f}" height="{HIGH}" rx="4"/><text x="{x + 8:.0f}" y="{y0 + 14}">'
                   f'{html.escape(big)}</text><text class="small" x="{x + 8:.0f}" y="{y0 + 28}">{html.escape(small)}</text></g>')
    return "".join(out) + "</svg>"
