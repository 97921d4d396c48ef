"""A running `lily serve`, and plain HTTP to it."""
import http.client
import json
import os
import re
import signal
import subprocess
import threading
import time

BINARY = None  # set by run.py
MODEL = None


class Server:
    """Starts on a free port and is there when the constructor returns. `arguments` are those of `lily serve`."""

    def __init__(self, *arguments, cache_dir=None):
        kept = ["--cache-dir", cache_dir] if cache_dir else ["--no-cache-dir"]
        command = [BINARY, "serve", "--model", MODEL, "--port", "0", *kept, *arguments]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("LILY_")}
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.log = []
        self._ready = threading.Event()
        self.port = None
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        self._ready.wait(60)
        if self.port is None:
            self.kill()
            raise RuntimeError("the server did not start:\n" + "".join(self.log))

    def _read_log(self):
        for line in self.process.stdout:
            self.log.append(line)
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            if found and self.port is None:
                self.port = int(found[1])
                self._ready.set()
        self._ready.set()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def stop(self):
        """As Ctrl-C does; waits for the end."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(30)
        self._reader.join(5)
        return code

    def kill(self):
        self.process.kill()
        self.process.wait(30)
        self._reader.join(5)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()

    def metrics(self):
        """{name without "lily_": value}"""
        text = self.get("/metrics").body.decode()
        return {m[1]: float(m[2]) for m in re.finditer(r"^lily_(\w+) (\S+)$", text, re.M)}

    def rss(self):
        """MiB, or 0 where there is no /proc."""
        try:
            with open(f"/proc/{self.process.pid}/status") as file:
                return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1024
        except OSError:
            return 0

    def get(self, path, headers=None):
        return self.request("GET", path, None, headers)

    def post(self, path, body, headers=None):
        return self.request("POST", path, body, headers)

    def request(self, method, path, body, headers=None):
        with Connection(self.port) as connection:
            return connection.request(method, path, body, headers)

    def stream(self, path, body, headers=None):
        """(events, headers); an event is (name, data), data a JSON value, text such as "[DONE]", or a comment's text with the name ":"."""
        with Connection(self.port) as connection:
            answer = connection.open("POST", path, body, headers)
            assert answer.status == 200, answer.read()
            return list(read_events(answer)), answer.headers

    def wait_until(self, condition, seconds=10):
        """The metrics, once condition(metrics) holds."""
        end = time.monotonic() + seconds
        while True:
            now = self.metrics()
            if condition(now):
                return now
            assert time.monotonic() < end, now
            time.sleep(0.02)

    def wait_idle(self):
        return self.wait_until(lambda m: m["requests_running"] == 0 and m["requests_waiting"] == 0)


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    def json(self):
        return json.loads(self.body)


class Connection:
    """One TCP connection, which may be left without warning."""

    def __init__(self, port):
        self.http = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self.response = None

    def open(self, method, path, body, headers=None):
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        self.http.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
        self.response = self.http.getresponse()  # which holds the socket, too
        return self.response

    def request(self, *arguments):
        return Answer(self.open(*arguments))

    def close(self):
        if self.response:
            self.response.close()
        self.http.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def read_events(response):
    name, data = "", []
    for raw in response:
        line = raw.decode().rstrip("\r\n")
        if line.startswith(":"):
            yield ":", line[1:].strip()
        elif line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            data.append(line[6:])
        elif not line and data:
            text = "\n".join(data)
            yield name, json.loads(text) if text[0] in "{[" and text != "[DONE]" else text
            name, data = "", []


_shared = None


def shared():
    """The server of all tests that need no other."""
    global _shared
    if _shared is None:
        _shared = Server("--cache-size", "512M", "--alias", "gpt-4o")
    return _shared


def stop_shared():
    if _shared and _shared.process.poll() is None:
        _shared.kill()
