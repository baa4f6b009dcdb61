"""A small S3 server on this machine, in memory: what pyarrow's file system asks of one, for tests and benchmarks.

It answers on the loopback interface only, does not check signatures, and knows objects, ranges, listings and uploads in
parts. `local_s3` points the environment of this process and its children at it.
"""

import contextlib
import hashlib
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest.mock import patch
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

_DATE = "2026-01-01T00:00:00.000Z"
_HTTP_DATE = "Thu, 01 Jan 2026 00:00:00 GMT"


class LocalS3(ThreadingHTTPServer):
    """The server and what it holds.

    Attributes:
        objects: Content by ``bucket/key``.
        written: Names in the order in which they were completed.
        read: Names in the order in which their content was asked for.
    """

    daemon_threads = True

    def __init__(self, buckets: tuple[str, ...]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.buckets = set(buckets)
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.written: list[str] = []
        self.read: list[str] = []

    @property
    def url(self) -> str:
        """Address of the server."""
        return f"http://127.0.0.1:{self.server_port}"


@contextlib.contextmanager
def local_s3(*buckets: str) -> Iterator[LocalS3]:
    """Serve empty buckets; addresses such as ``s3://bucket/path`` of this process lead to them meanwhile."""
    server = LocalS3(buckets)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    environment = {
        "AWS_ENDPOINT_URL": server.url,
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    try:
        with patch.dict(os.environ, environment):
            yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: LocalS3

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        """Tell whether a bucket or an object is there, and its size."""
        name, _ = self._target()
        if "/" not in name:
            self._reply(200 if name in self.server.buckets else 404)
        elif name in self.server.objects:
            self._reply(200, self.server.objects[name], is_object=True, with_body=False)
        else:
            self._reply(404)

    def do_GET(self) -> None:
        """Send an object, a part of it, or a listing."""
        name, query = self._target()
        if "/" not in name:
            self._list(name, query)
            return
        data = self.server.objects.get(name)
        if data is None:
            self._reply(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return
        self.server.read.append(name)
        asked = self.headers.get("Range")
        if asked is None:
            self._reply(200, data, is_object=True)
            return
        first, last = asked.removeprefix("bytes=").split("-")
        low, high = int(first), min(int(last or len(data) - 1), len(data) - 1)
        self._reply(
            206, data[low : high + 1], is_object=True, extra={"Content-Range": f"bytes {low}-{high}/{len(data)}"}
        )

    def do_PUT(self) -> None:
        """Take an object, or a part of an upload."""
        name, query = self._target()
        body = self._body()
        if name.partition("/")[0] not in self.server.buckets:
            self._reply(404, b"<Error><Code>NoSuchBucket</Code><Message>there is no such bucket</Message></Error>")
            return
        if "uploadId" in query:
            self.server.uploads[query["uploadId"]][int(query["partNumber"])] = body
        else:
            self._complete(name, body)
        self._reply(200, extra={"ETag": _tag(body)})

    def do_POST(self) -> None:
        """Begin or complete an upload in parts."""
        name, query = self._target()
        self._body()
        if "uploads" in query:
            upload = f"upload-{len(self.server.uploads)}"
            self.server.uploads[upload] = {}
            self._xml("InitiateMultipartUploadResult", f"<UploadId>{upload}</UploadId>")
        elif "uploadId" in query:
            parts = self.server.uploads.pop(query["uploadId"])
            self._complete(name, b"".join(parts[number] for number in sorted(parts)))
            self._xml("CompleteMultipartUploadResult", f"<ETag>{_tag(self.server.objects[name])}</ETag>")
        else:
            self._reply(501)

    def do_DELETE(self) -> None:
        """Remove an object."""
        name, _ = self._target()
        self.server.objects.pop(name, None)
        self._reply(204)

    def _complete(self, name: str, data: bytes) -> None:
        self.server.objects[name] = data
        self.server.written.append(name)

    def _list(self, bucket: str, query: dict[str, str]) -> None:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        rows, folders = [], set()
        for name in sorted(self.server.objects):
            owner, _, key = name.partition("/")
            if owner != bucket or not key.startswith(prefix):
                continue
            head, cut, _ = key.removeprefix(prefix).partition(delimiter) if delimiter else (key, "", "")
            if cut:
                folders.add(prefix + head + cut)
                continue
            size = len(self.server.objects[name])
            rows.append(
                f"<Contents><Key>{escape(key)}</Key><Size>{size}</Size><LastModified>{_DATE}</LastModified></Contents>"
            )
        rows += [f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in sorted(folders)]
        count = f"<IsTruncated>false</IsTruncated><KeyCount>{len(rows)}</KeyCount>"
        self._xml("ListBucketResult", f"<Name>{bucket}</Name>{count}{''.join(rows)}")

    def _target(self) -> tuple[str, dict[str, str]]:
        """Return ``bucket/key`` and the query."""
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query, keep_blank_values=True).items()}
        name = unquote(parts.path).lstrip("/")
        return name if name.partition("/")[2] else name.rstrip("/"), query

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "") == "chunked":
            raw = b"".join(iter(self._chunk, b""))
        else:
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        return _unframed(raw) if "aws-chunked" in self.headers.get("Content-Encoding", "") else raw

    def _chunk(self) -> bytes:
        size = int(self.rfile.readline().split(b";")[0], 16)
        data = self.rfile.read(size)
        self.rfile.readline()
        return data

    def _xml(self, tag: str, content: str) -> None:
        self._reply(200, f'<?xml version="1.0" encoding="UTF-8"?><{tag}>{content}</{tag}>'.encode())

    def _reply(
        self,
        status: int,
        body: bytes = b"",
        *,
        is_object: bool = False,
        with_body: bool = True,
        extra: dict[str, str] | None = None,
    ) -> None:
        self.send_response(status)
        headers = {"Content-Length": str(len(body)), **(extra or {})}
        if is_object:
            headers |= {"ETag": _tag(body), "Last-Modified": _HTTP_DATE, "Content-Type": "application/octet-stream"}
        for header, value in headers.items():
            self.send_header(header, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)


def _unframed(raw: bytes) -> bytes:
    """Return the content of a body in the form ``aws-chunked``: lines of sizes between pieces, then trailers."""
    pieces: list[bytes] = []
    position = 0
    while True:
        end = raw.index(b"\r\n", position)
        size = int(raw[position:end].split(b";")[0], 16)
        if size == 0:
            return b"".join(pieces)
        pieces.append(raw[end + 2 : end + 2 + size])
        position = end + 2 + size + 2


def _tag(data: bytes) -> str:
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'
