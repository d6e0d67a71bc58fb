"""A real HTTP server on this host that speaks, or mangles, the OpenAI wire format."""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def completion(text: str, **more) -> dict:
    """A chat completion that says `text`."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
    }
    return {
        "id": "x", "object": "chat.completion", "model": "served", "choices": [{**choice, **more}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }  # fmt: skip


class ModelServer:
    """Answers each request with the next of `script`, the last one for ever after.

    An entry is a text (a good completion of it), a dict (sent as JSON), a tuple (status, headers,
    body), or a function of the request's JSON that returns one of these. `stall`, `half` and
    `drop` do to the connection what they are called.
    """

    def __init__(self, *script) -> None:
        self.script, self.requests, self.headers = list(script), [], []
        self.release = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):  # noqa: N802
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append(body)
                server.headers.append(dict(self.headers))
                step = server.script[min(len(server.requests), len(server.script)) - 1]
                while callable(step):
                    step = step(body)
                server._send(self, step)

            def log_message(self, *args):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True)

    def _send(self, handler: BaseHTTPRequestHandler, step) -> None:
        if step == "stall":
            self.release.wait(10)
            return
        if step == "drop":
            handler.connection.shutdown(socket.SHUT_RDWR)
            return
        if step == "trickle":
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while not self.release.wait(0.02):
                try:
                    handler.wfile.write(b" ")
                except OSError:
                    return
            return
        half = step == "half"
        if half or isinstance(step, str):
            step = completion("" if half else step)
        if isinstance(step, dict):
            step = (200, {"Content-Type": "application/json"}, json.dumps(step))
        status, headers, text = step
        data = text.encode()
        handler.send_response(status)
        for key, value in headers.items():
            handler.send_header(key, value)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data[: len(data) // 2] if half else data)
        handler.close_connection = True

    def __enter__(self) -> ModelServer:
        self.thread.start()
        return self

    def __exit__(self, *args) -> None:
        self.release.set()
        self.http.shutdown()
        self.http.server_close()


def error(status: int, message: str, **headers) -> tuple:
    """An error as OpenAI's servers send it."""
    head = {
        "Content-Type": "application/json",
        **{k.replace("_", "-"): v for k, v in headers.items()},
    }
    return (status, head, json.dumps({"error": {"message": message, "type": "x", "code": None}}))


HTML = (200, {"Content-Type": "text/html"}, "<!DOCTYPE html><html><body>Sign in</body></html>")
BROKEN = (200, {"Content-Type": "application/json"}, '{"choices": [')


def unused_url() -> str:
    """An address where nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
