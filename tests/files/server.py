"""The file `served` of the current folder over HTTP on a free port of the loopback, with ranges; the port's number goes to the file `port`."""
import http.server, os, re

class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        data = open('served', 'rb').read()
        if self.path.split('?')[0] != '/served':
            return self.send_error(404)
        asked = re.match(r'bytes=(\d+)-', self.headers.get('Range') or '')
        at = int(asked.group(1)) if asked else 0
        if asked and at >= len(data):
            return self.send_error(416)
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header('Content-Range', 'bytes %d-%d/%d' % (at, len(data) - 1, len(data)))
        self.send_header('Content-Length', str(len(data) - at))
        self.end_headers()
        self.wfile.write(data[at:])

server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
open('port.new', 'w').write(str(server.server_port))
os.rename('port.new', 'port')
server.serve_forever()
