#!/usr/bin/env python3
"""A model on loopback that says what it is told to: the Messages API as far as the Claude Code command line uses it.

    model_server.py SCRIPT LOG

SCRIPT is a JSON object of lists of turns: "review", "verdict" for requests to judge a claim, "criteria" of a contract,
"proposal" and "decision" for questions about documents, "reproduction" for a test that proves a claim, "fix_plan" and
"fix_report" for a fix. A review whose prompt has the text "fixed" gets "review_fixed". The turn that is given is that of the position which the conversation has reached, the last one where it goes on longer. A turn is a
list of content blocks: {"type": "text", "text": "…"} or
{"type": "tool_use", "name": "…", "input": {…}}. In every string, NONCE stands for what the prompt ends with, and
DIR for the folder that the prompt names. "delay" is the number of seconds before an answer. LOG gets a line of JSON for every request. The port stands on the first
line of standard output.
"""
import http.server
import json
import re
import sys
import threading
import time

SCRIPT, LOG = sys.argv[1], sys.argv[2]
LOCK = threading.Lock()
# As many as the prompts here need: too few would mean that a part was not read.
USAGE = {"input_tokens": 4000, "cache_creation_input_tokens": 200, "cache_read_input_tokens": 800, "output_tokens": 7}


def texts(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, dict):
        for key in ("text", "content"):
            yield from texts(value.get(key))


def filled(value, names):
    if isinstance(value, str):
        for name, text in names.items():
            value = value.replace(name, text)
        return value
    if isinstance(value, list):
        return [filled(item, names) for item in value]
    if isinstance(value, dict):
        return {key: filled(item, names) for key, item in value.items()}
    return value


def events(request):
    messages = request.get("messages", [])
    position = sum(1 for m in messages if m["role"] == "assistant")
    said = "\n".join(texts([m.get("content") for m in messages]))
    nonces = re.findall(r"^nonce: ([0-9a-f]{32})$", said, re.M)
    folders = re.findall(r"Your working folder, (/[^,]+), holds", said)
    with open(SCRIPT, encoding="utf-8") as f:
        script = json.load(f)
    time.sleep(script.get("delay", 0))
    form = json.dumps([request.get("tools"), request.get("output_config")])
    kinds = {"refuted": "verdict", "standing": "criteria", "valid": "proposal", "floor_manager": "decision",
             "fix": "reproduction", "steps": "fix_plan", "problem": "fix_report"}
    kind = next((kind for word, kind in kinds.items() if f'"{word}"' in form), "review")
    if kind == "review" and script.get("fixed", "\0") in said:
        kind = "review_fixed"
    turns = script[kind]
    turn = filled(turns[min(position, len(turns) - 1)],
                  {"NONCE": nonces[-1] if nonces else "none", "DIR": folders[-1] if folders else "/nowhere"})
    called = False
    yield {"type": "message_start", "message": {
        "id": f"msg_{position}", "type": "message", "role": "assistant", "model": request.get("model", "stub"),
        "content": [], "stop_reason": None, "stop_sequence": None, "usage": dict(USAGE, output_tokens=1)}}
    for i, block in enumerate(turn):
        if block["type"] == "tool_use":
            called = True
            start = {"type": "tool_use", "id": f"toolu_{position}_{i}", "name": block["name"], "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        else:
            start = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        yield {"type": "content_block_start", "index": i, "content_block": start}
        yield {"type": "content_block_delta", "index": i, "delta": delta}
        yield {"type": "content_block_stop", "index": i}
    stop = "tool_use" if called else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": USAGE}
    yield {"type": "message_stop"}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, kind, body):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.send_header("request-id", "req_1")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log(self, body):
        line = json.dumps({"method": self.command, "path": self.path, "headers": dict(self.headers), "body": body})
        # Several requests come at once.
        with LOCK, open(LOG, "a", encoding="utf-8") as f:
            f.write(line + "\n")

    def do_HEAD(self):
        self.log(None)
        self.answer("text/plain", b"")

    def do_GET(self):
        self.log(None)
        self.answer("application/json", b"{}")

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        self.log(body)
        if not isinstance(body, dict) or not self.path.split("?")[0].endswith("/v1/messages"):
            return self.answer("application/json", b"{}")
        lines = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events(body))
        self.answer("text/event-stream", lines.encode())

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
