"""A Maven repository on loopback, for the tests of whoever downloads jars."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from headrace.java.jars import Jar


class Repository:
    """A Maven repository on loopback: what it serves, and what it was asked for."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.failures_left = 0  # the next so many requests are answered 503
        self.asked: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}/maven2"
        self._thread = threading.Thread(target=self._server.serve_forever, args=[0.01])
        self._thread.start()

    def add(self, artifact: str, content: bytes) -> Jar:
        """Serve `content` and return the line that pins it."""
        digest = hashlib.sha256(content).hexdigest()
        jar = Jar("org.example.deep", artifact, "1.0", digest, len(content))
        self.files[f"/maven2/{jar.repository_path}"] = content
        return jar

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        repository = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                repository.asked.append(self.path)
                content = repository.files.get(self.path)
                if repository.failures_left:
                    repository.failures_left -= 1
                    self.send_error(503)
                elif content is None:
                    self.send_error(404)
                else:
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler
