"""A small server on this machine: files with ranges, a package index, the routes of a hub, and faults on demand.

Every byte of content that it sends is counted, so tests can say what was fetched and what was not.
"""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


@dataclass
class Answer:
    """What one path answers."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    ranges: bool = True
    """False ignores the Range header, as some servers do."""
    length: bool = True
    """False says no length, and closes the connection at the end instead."""
    cuts: list[int] = field(default_factory=list)
    """For each coming request: the number of bytes after which the connection breaks."""


def git_etag(data: bytes) -> str:
    """Return the etag that a hub gives a small file: git's id of its blob."""
    return hashlib.sha1(b"blob %d\x00" % len(data) + data).hexdigest()


def hub_etag(path: str, data: bytes) -> str:
    """Return the etag that a hub gives a file: the sha256 of a large one, which is one of Parquet here."""
    return hashlib.sha256(data).hexdigest() if path.endswith(".parquet") else git_etag(data)


def hub_entry(path: str, data: bytes) -> dict[str, Any]:
    """Return what the tree of a hub says of a file."""
    entry: dict[str, Any] = {"type": "file", "path": path, "size": len(data), "oid": git_etag(data)}
    if path.endswith(".parquet"):
        entry["lfs"] = {"oid": hub_etag(path, data), "size": len(data), "pointerSize": 134}
    return entry


class Server:
    """The answers by path, and what was asked and sent."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []
        """`METHOD path` of every request, with the range where one was asked for."""
        self.logins: list[str] = []
        """The Authorization header of every request, empty where there was none."""
        self.sent_bytes = 0
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def __enter__(self) -> Server:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self._http.server_port}"

    def serve(self, path: str, body: bytes, **how: Any) -> str:
        """Answer a path with a body; return its URL."""
        self.answers[urlsplit(path).path] = Answer(body, **how)
        return self.url + path

    def serve_wheel(self, package: str, file_name: str, wheel: bytes) -> None:
        """Add a wheel to the package index under /simple/ (PEP 503)."""
        self.serve(f"/files/{file_name}", wheel)
        page = f'<!DOCTYPE html><html><body><a href="/files/{file_name}">{file_name}</a></body></html>'
        self.serve(f"/simple/{package}/", page.encode(), headers={"Content-Type": "text/html"})

    def serve_data_set(self, repository: str, commit: str, files: dict[str, bytes]) -> None:
        """Answer the five routes of a hub for a data set: resolve, info, revision, tree and paths-info.

        Parquet files stand in git-lfs, as on a hub: their etag is their sha256.
        """
        for path, data in files.items():
            headers = {"X-Repo-Commit": commit, "ETag": f'"{hub_etag(path, data)}"'}
            self.serve(self.resolve_path(repository, commit, path), data, headers=headers)
        entries = [hub_entry(path, data) for path, data in sorted(files.items())]
        siblings = [{"rfilename": e["path"], "size": e["size"], "blobId": e["oid"]} for e in entries]
        info = {"id": repository, "sha": commit, "private": False, "tags": [], "siblings": siblings}
        api = f"/api/datasets/{repository}"
        for path, document in {
            api: info,
            f"{api}/revision/{commit}": info,
            f"{api}/tree/{commit}": entries,
            f"{api}/paths-info/{commit}": entries,
        }.items():
            self.serve(path, json.dumps(document).encode(), headers={"Content-Type": "application/json"})

    @staticmethod
    def resolve_path(repository: str, commit: str, path: str) -> str:
        """Return the path that a hub serves a file under."""
        return f"/datasets/{repository}/resolve/{commit}/{path}"


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._answer(with_body=True)

        def log_message(self, format: str, *args: object) -> None:
            """Stay silent."""

        def _answer(self, *, with_body: bool) -> None:
            path, asked_range = unquote(urlsplit(self.path).path), self.headers.get("Range", "")
            server.asked.append(f"{self.command} {path} {asked_range}".rstrip())
            server.logins.append(self.headers.get("Authorization", ""))
            answer = server.answers.get(path, Answer(status=404))
            status, body, extra = _part(answer, asked_range)
            self.send_response(status)
            length = {"Content-Length": str(len(body))} if answer.length else {"Connection": "close"}
            for key, value in {**answer.headers, **extra, **length}.items():
                self.send_header(key, value)
            self.end_headers()
            if with_body:
                self._send(body, answer)

        def _send(self, body: bytes, answer: Answer) -> None:
            if answer.cuts:
                body = body[: answer.cuts.pop(0)]
                self.close_connection = True
            server.sent_bytes += len(body)
            self.wfile.write(body)

    return Handler


def _part(answer: Answer, asked_range: str) -> tuple[int, bytes, dict[str, str]]:
    """Return status, body and headers of the range asked for; the whole where none is, or none is honoured."""
    if not (asked_range and answer.ranges and answer.status == 200):
        return answer.status, answer.body, {}
    size = len(answer.body)
    first, _, last = asked_range.removeprefix("bytes=").partition("-")
    start, end = int(first), min(int(last or size - 1), size - 1)
    if start >= size:
        return 416, b"", {"Content-Range": f"bytes */{size}"}
    return 206, answer.body[start : end + 1], {"Content-Range": f"bytes {start}-{end}/{size}"}
