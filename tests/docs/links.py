"""links.py FOLDER: each link of the pages leads to a page that is there, and to a part that it has; nothing is loaded from elsewhere."""
import pathlib
import sys
from html.parser import HTMLParser


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loads, self.twice = set(), [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        a = dict(attributes)
        if "id" in a:
            if a["id"] in self.ids:
                self.twice.append(a["id"])
            self.ids.add(a["id"])
        if tag == "a" and "href" in a:
            self.links.append(a["href"])
        elif "href" in a or "src" in a:
            self.loads.append(a.get("href") or a.get("src"))


folder = pathlib.Path(sys.argv[1])
pages = {p.name: Page(p.read_text()) for p in folder.glob("*.html")}
wrong, count = [], 0
for name, page in pages.items():
    wrong += [f"{name}: two parts are called {i}" for i in page.twice]
    wrong += [f"{name}: loads {u}" for u in page.loads if ":" in u and not u.startswith("data:") or not (":" in u or (folder / u).exists())]
    for link in page.links:
        count += 1
        if link.startswith("https://"):
            continue
        file, _, part = link.partition("#")
        target = pages.get(file or name)
        if not target or (part and part not in target.ids):
            wrong.append(f"{name}: {link} leads nowhere")
print("\n".join(wrong) or f"{count} links of {len(pages)} pages")
sys.exit(bool(wrong))
