"""A hub of models on free ports of the loopback, for test_hub.c. It lists what the folder `hub` has,
hub/OWNER/REPO/.., in pages of two files, and serves it. A second port serves the gguf files: the first one
redirects to it, as the hub's own servers do. Some owners behave badly. Each request is a line of the file
`requests`: the port's role, the path, the token, the range. The first port's number goes to the file `port`."""
import hashlib, http.server, json, os, re, threading, time

PAGE = 2
GOOD = {'type': 'file', 'path': 'config.json', 'size': 2}
HOSTILE = ['../../../evil.gguf', '/tmp/evil.gguf', '.hidden.gguf', 'a/../evil.gguf', 'a//evil.gguf', 'evil.gguf/', '',
           'a b.gguf', 'a\nb.gguf', 'a\u00e9.gguf', 'a%2e.gguf', 'a\\b.gguf', 'x' * 129 + '.gguf', 'a/' * 8 + 'b.gguf',
           'a/.gguf', '.listing.json', 'a?b.gguf', 'a#b.gguf']

def file_of(path, data, wrong):
    """A row of the listing: files of models have their sum in `lfs`, others what git calls them."""
    row = {'type': 'file', 'oid': hashlib.sha1(data).hexdigest(), 'size': len(data), 'path': path}
    if path.endswith(('.gguf', '.safetensors')):
        row['size'] = 130 if path.endswith('.gguf') else len(data)
        row['lfs'] = {'oid': '0' * 64 if wrong else hashlib.sha256(data).hexdigest(), 'size': len(data), 'pointerSize': 130}
    return row

def rows_of(owner, repo):
    """All rows of a repository's listing, in the order of their names."""
    top, rows = os.path.join('hub', owner, repo), []
    for folder, folders, names in os.walk(top):
        rows += [{'type': 'directory', 'path': os.path.relpath(os.path.join(folder, d), top), 'oid': '0' * 40, 'size': 0}
                 for d in folders]
        for name in names:
            path = os.path.join(folder, name)
            rows.append(file_of(os.path.relpath(path, top), open(path, 'rb').read(), owner == 'wrong'))
    if owner == 'hostile':
        rows += [{**GOOD, 'path': p} for p in HOSTILE]
        rows += [{**GOOD, 'path': 'huge.gguf', 'size': 2 ** 41}, {**GOOD, 'path': 'minus.gguf', 'size': -1},
                 {**GOOD, 'path': 'real.gguf', 'size': 2.5}, {**GOOD, 'path': 'none.gguf', 'size': None},
                 {**GOOD, 'path': 'sum.gguf', 'lfs': {'oid': 'no sum', 'size': 2}}, {**GOOD, 'path': 7}, {'type': 'file'},
                 {**GOOD, 'path': 'lfs.gguf', 'lfs': {}}, 'a text', None, [], 3]
    return sorted(rows, key=lambda r: str(r.get('path')) if isinstance(r, dict) else '')

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *args):
        pass

    def answer(self, status, body=b'', headers={}):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if 'Content-Length' not in headers:
            self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def listing(self, owner, repo, query):
        at = int(re.search(r'cursor=(\d+)', query or 'cursor=0').group(1) if 'cursor' in (query or '') else 0)
        if owner == 'broken':
            return self.answer(200, {'deep': b'[' * 100000, 'object': b'{"a": 1}', 'half': b'[{"type": "fi'}[repo])
        if owner == 'long':                                     # more than any listing has
            return self.answer(200, b'[' + b' ' * (1 << 25) + b']')
        if not os.path.isdir(os.path.join('hub', owner, repo)):
            return self.answer(401 if owner == 'hidden' else 404)
        rows, headers = rows_of(owner, repo), {}
        base = 'http://127.0.0.1:%d' % data.server_port if owner == 'hostile' else 'http://%s' % self.headers['Host']
        if at + PAGE < len(rows) or owner == 'endless':
            headers['Link'] = '<%s/api/models/%s/%s/tree/main?recursive=true&cursor=%d>; rel="next"' % (
                base, owner, repo, at + PAGE)
        self.answer(200, json.dumps(rows[at:at + PAGE]).encode(), headers)

    def file(self, owner, path):
        """The bytes of a file, from where the request says. Owner `cut` closes each connection after 400,000 bytes,
        `slow` takes a second, `more` sends a byte too many, and `whole` knows no ranges."""
        try:
            all = open(os.path.join('hub', path), 'rb').read()
        except OSError:
            return self.answer(404)
        asked = re.match(r'bytes=(\d+)-', self.headers.get('Range') or '') if owner != 'whole' else None
        at = int(asked.group(1)) if asked else 0
        if at >= len(all) and asked:
            return self.answer(416)
        body = all[at:] + (b'!' if owner == 'more' else b'')
        headers = {'Content-Length': str(len(body))}
        if asked:
            headers['Content-Range'] = 'bytes %d-%d/%d' % (at, len(all) - 1, len(all))
        if owner == 'slow':
            time.sleep(1)
        self.answer(206 if asked else 200, body[:400000] if owner == 'cut' else body, headers)
        if owner == 'cut':
            self.close_connection = True

    def do_GET(self):
        role = 'hub' if self.server is hub else 'data'
        with lock, open('requests', 'a') as f:
            f.write('%s %s %s %s\n' % (role, self.path, self.headers.get('Authorization', '-'), self.headers.get('Range', '-')))
        path, _, query = self.path.partition('?')
        api = re.fullmatch(r'/api/models/([^/]+)/([^/]+)/tree/main', path)
        file = re.fullmatch(r'/([^/]+)/([^/]+)/resolve/main/(.+)', path)
        m = api or file
        if not m:
            return self.answer(404)
        if m[1] == 'hidden' and role == 'hub' and self.headers.get('Authorization') != 'Bearer hf_secret':
            return self.answer(401 if 'Authorization' not in self.headers else 403)
        if api:
            return self.listing(m[1], m[2], query)
        if role == 'hub' and m[3].endswith('.gguf'):
            return self.answer(302, b'', {'Location': 'http://127.0.0.1:%d%s' % (data.server_port, self.path)})
        self.file(m[1], '/'.join(m.groups()))

lock = threading.Lock()
hub = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
data = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
threading.Thread(target=data.serve_forever, daemon=True).start()
open('port.new', 'w').write(str(hub.server_port))
os.rename('port.new', 'port')
hub.serve_forever()
