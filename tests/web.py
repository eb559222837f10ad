"""A web server on loopback for tests: byte ranges or none, and the ways in which servers fail."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import xxhash


class Server(ThreadingHTTPServer):
    """`files` by their path. Requests are counted by method; `fault` is what goes wrong."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.ranges, self.tags, self.head, self.fault = True, True, True, ""
        self.asked: list[tuple[str, str, str]] = []
        self.sent = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def do_HEAD(self) -> None:
        if self.server.head:
            self._answer(body=False)
        else:
            self.send_error(403)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        path = self.path.partition("?")[0]
        self.server.asked.append((self.command, self.path, self.headers.get("Range", "")))
        if self.server.fault.isdecimal():
            return self.send_error(int(self.server.fault))
        data = self.server.files.get(path)
        if data is None:
            return self._listing(path) if path.endswith("/") else self.send_error(404)
        return self._send(data, body)

    def _listing(self, folder: str) -> None:
        names = {p.removeprefix(folder) for p in self.server.files if p.startswith(folder)}
        if not names:
            return self.send_error(404)
        here = sorted({name.partition("/")[0] + ("/" if "/" in name else "") for name in names})
        page = "<html>" + "".join(f'<a href="{name}">{name}</a>' for name in ["?sort=name", "../", *here])
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page.encode())
        return None

    def _send(self, data: bytes, body: bool) -> None:
        asked = re.match(r"bytes=(\d+)-(\d+)", self.headers.get("Range", "")) if self.server.ranges else None
        first, last = (int(asked[1]), min(int(asked[2]) + 1, len(data))) if asked else (0, len(data))
        whole_as_part = self.server.fault == "206 for the whole" and body and not asked
        if whole_as_part:
            first, last = 0, len(data) // 2
        self.send_response(206 if asked or whole_as_part else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{last - 1}/{len(data)}")
        if self.server.fault == "says gzip":
            self.send_header("Content-Encoding", "gzip")
        if self.server.fault == "head is short" and not body:
            self.send_header("Content-Length", "1000")
        elif self.server.fault != "no size" and not (self.server.fault == "206 for the whole" and not body):
            self.send_header("Content-Length", str(last - first))
        if self.server.tags:
            self.send_header("ETag", f'"{xxhash.xxh3_64_hexdigest(data)}"')
        self.end_headers()
        if body:
            self._write(data[first:last])

    def _write(self, data: bytes) -> None:
        if self.server.fault == "breaks":
            data = data[: len(data) // 2]
        try:
            self.wfile.write(data)
        except OSError:  # the client had enough
            return
        self.server.sent += len(data)
        self.close_connection = True


@contextmanager
def serving() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
